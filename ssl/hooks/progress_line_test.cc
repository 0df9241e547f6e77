// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/progress_line.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(FormatDuration, UsesTheTwoLargestUnits) {
  EXPECT_EQ(FormatDuration(0.0), "0s");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(59.6), "1m 00s");
  EXPECT_EQ(FormatDuration(65.0), "1m 05s");
  EXPECT_EQ(FormatDuration(3599.0), "59m 59s");
  EXPECT_EQ(FormatDuration(7380.0), "2h 03m");
  EXPECT_EQ(FormatDuration(86400.0), "1d 00h");
  EXPECT_EQ(FormatDuration(4 * 86400.0 + 5 * 3600.0), "4d 05h");
}

TEST(FormatDuration, WhatIsNoDuration_IsUnknown) {
  EXPECT_EQ(FormatDuration(-1.0), "unknown");
  EXPECT_EQ(FormatDuration(1e18), "unknown");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

TEST(FormatCount, GroupsDigitsByThree) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-999), "-999");
  EXPECT_EQ(FormatCount(-1000), "-1,000");
}

TEST(FormatBytes, GibibytesBeginAtOne) {
  EXPECT_EQ(FormatBytes(0), "0.0 MiB");
  EXPECT_EQ(FormatBytes(1 << 19), "0.5 MiB");
  EXPECT_EQ(FormatBytes(1023 << 20), "1023.0 MiB");
  EXPECT_EQ(FormatBytes(int64_t{1229} << 20), "1.2 GiB");
}

TEST(FormatProgress, NamesEveryNumber) {
  StepProgress progress;
  progress.epoch = 3;
  progress.num_epochs = 100;
  progress.step = 1200;
  progress.num_steps = 10000;
  progress.loss = 5.12344;
  progress.learning_rate = 0.03;
  progress.samples_per_second = 1234.4;
  progress.data_wait_share = 0.031;
  progress.seconds_left = 65.0;
  progress.resident_bytes = 812 << 20;

  EXPECT_EQ(FormatProgress(progress),
            " 12% | epoch 3/100 | step 1,200/10,000 | loss 5.1234 | lr 0.03 | 1,234 samples/s | data 3% | "
            "1m 05s left | 812 MiB");
}

TEST(FormatProgress, BatchTime_IsShownWhenItIsKnown) {
  StepProgress progress;
  progress.samples_per_second = 0.54;
  EXPECT_NE(FormatProgress(progress).find("| 0.5 samples/s |"), std::string::npos);
  progress.samples_per_second = 0.0;
  EXPECT_NE(FormatProgress(progress).find("| 0 samples/s | data 0% |"), std::string::npos);
  progress.batch_ms = 12.34;
  EXPECT_NE(FormatProgress(progress).find("| 0 samples/s | 12.3 ms/batch | data 0% |"), std::string::npos);
}

TEST(FormatProgress, WaitingForTheDevice_IsShownBesideThatForData) {
  StepProgress progress;
  progress.device_wait_share = 0.694;
  EXPECT_NE(FormatProgress(progress).find("| data 0% | device 69% |"), std::string::npos);
}

TEST(FormatProgress, HundredPercent_IsTheEndAlone) {
  StepProgress progress;
  progress.num_steps = 1000;
  progress.step = 999;
  EXPECT_EQ(FormatProgress(progress).substr(0, 4), " 99%");
  progress.step = 1000;
  EXPECT_EQ(FormatProgress(progress).substr(0, 4), "100%");
}

}  // namespace
}  // namespace ssl
