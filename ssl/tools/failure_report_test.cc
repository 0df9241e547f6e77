// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/failure_report.h"

#include <errno.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/crash_report.h"
#include "ssl/tools/report_file.h"

namespace ssl {
namespace {

using ::testing::Ge;
using ::testing::SizeIs;

// JSON is a subset of YAML.

std::string Text(const ConfigNode& report, const std::string& path) {
  const ConfigNode* node = report.FindPath(path);
  return node == nullptr ? "(missing)" : node->text();
}

RunProgress Progress() {
  RunProgress progress;
  progress.rank = 1;
  progress.phase = "training";
  progress.iteration = 17;
  progress.epoch = 2;
  progress.last_checkpoint = 15;
  return progress;
}

const FailureSource kSource{"train", "runs/\"a\"/checkpoints", 2};

void ExpectSource(const ConfigNode& report) {
  EXPECT_EQ(Text(report, "engine"), "train");
  EXPECT_EQ(Text(report, "rank"), "1");
  EXPECT_EQ(Text(report, "world_size"), "2");
  EXPECT_EQ(Text(report, "pid"), absl::StrCat(getpid()));
  EXPECT_THAT(Text(report, "host"), SizeIs(Ge(1u)));
  EXPECT_EQ(Text(report, "phase"), "training");
  EXPECT_EQ(Text(report, "step"), "17");
  EXPECT_EQ(Text(report, "epoch"), "2");
  EXPECT_EQ(Text(report, "last_checkpoint.step"), "15");
}

TEST(FailureReportTest, TellsErrorPlaceAndProcess) {
  RunProgress progress = Progress();
  progress.failing_hook = "checkpoint";
  progress.failing_event = "OnStep";
  const ConfigNode report = Parsed(FailureReport(ErrnoStatus(ENOSPC, "writing", "x"), kSource, progress));
  ExpectSource(report);
  EXPECT_EQ(Text(report, "code"), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(Text(report, "exit_code"), "5");
  EXPECT_EQ(Text(report, "errno"), absl::StrCat(ENOSPC));
  EXPECT_EQ(Text(report, "errno_text"), "No space left on device");
  EXPECT_EQ(Text(report, "hook"), "checkpoint");
  EXPECT_EQ(Text(report, "event"), "OnStep");
  EXPECT_EQ(Text(report, "last_checkpoint.directory"), "runs/\"a\"/checkpoints/step_15");
  EXPECT_EQ(Text(report, "exception"), "(missing)");
}

TEST(FailureReportTest, WithoutACheckpoint_SaysNothingOfIt) {
  RunProgress progress = Progress();
  progress.last_checkpoint = -1;
  const absl::Status error = WithDetail(absl::InternalError("bad"), kDetailException, "c10::Error");
  const ConfigNode report = Parsed(FailureReport(error, kSource, progress));
  EXPECT_EQ(Text(report, "last_checkpoint"), "(missing)");
  EXPECT_EQ(Text(report, "exception"), "c10::Error");
  EXPECT_EQ(Text(report, kReportSilent), "(missing)");
}

TEST(FailureReportTest, AHungRank_IsNamedForTheLauncher) {
  const absl::Status error = WithDetail(absl::DeadlineExceededError("late"), kDetailSilent, "process 17 on a");
  EXPECT_EQ(Text(Parsed(FailureReport(error, kSource, Progress())), "no_answer_from"), "process 17 on a");
}

class CrashReportTest : public ::testing::Test {
 protected:
  ConfigNode Read() { return Parsed(PosixFileSystem().Read(path_).value_or("null")); }

  const std::string path_ = absl::StrCat(MakeTempDir("crash"), "/failure.json");
  const ReportFile file_{path_};
};

TEST_F(CrashReportTest, HasTheSameMembers) {
  const RunProgress progress = Progress();
  const CrashReportScope scope(file_, KnownFields(kSource, progress), kSource.checkpoints, progress);
  WriteCrashReport("bad \"quotes\"\nand lines", SIGSEGV);
  const ConfigNode report = Read();
  ExpectSource(report);
  EXPECT_EQ(Text(report, "message"), "bad  quotes  and lines");
  EXPECT_EQ(Text(report, "signal"), absl::StrCat(SIGSEGV));
  EXPECT_EQ(Text(report, "exit_code"), absl::StrCat(128 + SIGSEGV));
  EXPECT_EQ(Text(report, "last_checkpoint.directory"), "runs/ a /checkpoints/step_15");
}

TEST_F(CrashReportTest, TellsWhereTheRunStandsNow) {
  RunProgress progress = Progress();
  const CrashReportScope scope(file_, KnownFields(kSource, progress), kSource.checkpoints, progress);
  progress.iteration = -42;
  progress.last_checkpoint = -1;
  WriteCrashReport("ended", SIGABRT);
  EXPECT_EQ(Text(Read(), "step"), "-42");
  EXPECT_EQ(Text(Read(), "last_checkpoint"), "(missing)");
}

TEST_F(CrashReportTest, OutsideAScopeAndTheSecondTime_NothingIsWritten) {
  WriteCrashReport("before", SIGSEGV);
  const RunProgress progress = Progress();
  {
    const CrashReportScope scope(file_, "\"a\": 1", "x", progress);
    WriteCrashReport("first", SIGSEGV);
    WriteCrashReport("second", SIGSEGV);
  }
  WriteCrashReport("after", SIGSEGV);
  EXPECT_EQ(Text(Read(), "message"), "first");
}

TEST_F(CrashReportTest, WhatDoesNotFit_IsNoReport) {
  const RunProgress progress = Progress();
  const CrashReportScope scope(file_, std::string(5000, 'x'), "x", progress);
  WriteCrashReport("ended", SIGSEGV);
  EXPECT_FALSE(PosixFileSystem().Exists(path_));
}

}  // namespace
}  // namespace ssl
