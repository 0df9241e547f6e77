// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/progress.h"

#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"

namespace ssl {
namespace {

TEST(ProgressTest, FirstTwoSeconds_AreSilent) {
  ManualClock clock;
  Progress progress("features", 100, clock);
  clock.Advance(absl::Milliseconds(1900));
  EXPECT_EQ(progress.Update(10), "");
}

TEST(ProgressTest, Line_HasShareCountAndTimeLeft) {
  ManualClock clock;
  Progress progress("features", 100, clock);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(progress.Update(25), "features: 25% (25 of 100), 9s left");
}

TEST(ProgressTest, LinesAreTwoSecondsApart) {
  ManualClock clock;
  Progress progress("features", 100, clock);
  clock.Advance(absl::Seconds(3));
  EXPECT_NE(progress.Update(25), "");
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(progress.Update(30), "");
  clock.Advance(absl::Seconds(1));
  EXPECT_NE(progress.Update(40), "");
}

TEST(ProgressTest, LastOne_IsSilent) {
  ManualClock clock;
  Progress progress("features", 100, clock);
  clock.Advance(absl::Seconds(60));
  EXPECT_EQ(progress.Update(100), "");
}

}  // namespace
}  // namespace ssl
