// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/clock.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"

namespace ssl {
namespace {

TEST(ClockTest, Real_NeverGoesBack) {
  absl::Time last = Clock::Real().Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = Clock::Real().Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, Real_IsADate) {
  const absl::Duration apart = Clock::Real().Now() - absl::Now();
  EXPECT_LT(absl::AbsDuration(apart), absl::Hours(1));
}

TEST(ManualClockTest, Advance_IsTheOnlyThingThatMovesIt) {
  ManualClock clock;
  Clock& seen = clock;
  const absl::Time start = seen.Now();
  EXPECT_EQ(start, absl::UnixEpoch());
  EXPECT_EQ(seen.Now(), start);
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(seen.Now() - start, absl::Seconds(2));
}

}  // namespace
}  // namespace ssl
