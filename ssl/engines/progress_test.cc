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
  progress.Update(0);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(progress.Update(25), "features: 25% (25 of 100), 9s left");
}

// Opening ten million files takes seconds, the first of them none.
TEST(ProgressTest, WhatCameBefore_IsNoMeasure) {
  ManualClock clock;
  Progress progress("reading", 10000000, clock);
  clock.Advance(absl::Seconds(10));
  EXPECT_EQ(progress.Update(1), "reading: 0% (1 of 10000000)");
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(progress.Update(10), "reading: 0% (10 of 10000000)");
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(progress.Update(101), "reading: 0% (101 of 10000000), 4d 15h left");
}

// Epochs are few and long.
TEST(ProgressTest, ShareOfFew_IsAMeasure) {
  ManualClock clock;
  Progress progress("epochs", 4, clock);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(progress.Update(1), "epochs: 25% (1 of 4)");
  clock.Advance(absl::Seconds(100));
  EXPECT_EQ(progress.Update(2), "epochs: 50% (2 of 4), 3m 20s left");
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
