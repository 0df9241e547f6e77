// SPDX-License-Identifier: Apache-2.0
//
// The profiler in whole runs; what it does at each event: profiler_hook_test.cc.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/hooks/testing/trace_events.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(ProfilerInARun, RanksThatAreNone_AreRefusedAtTheStart) {
  const auto opened = [](const std::string& ranks, const std::string& more = "") {
    return OpenTinyRun("CHECKPOINT: {DIR: " + MakeTempDir("profiled_ranks") + "}\nPROFILING: {PROFILED_RANKS: [" +
                       ranks + "], RUNTIME_PROFILING: {USE_PROFILER: True}}\n" + more)
        .status();
  };
  EXPECT_THAT(opened("7, 9"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2: config.PROFILING.PROFILED_RANKS is [7, 9], which "),
                             HasSubstr("names no rank of this run, expected 0, its only rank"))));
  EXPECT_THAT(opened(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PROFILED_RANKS is [], which")));
  EXPECT_OK(opened("0, 9")) << "the default has a rank that may be missing, too";
  // A check of a configuration has no ranks.
  const std::string four = "DISTRIBUTED: {NUM_PROC_PER_NODE: 4}";
  EXPECT_OK(opened("3", four));
  EXPECT_THAT(opened("4", four),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("its ranks, which are 0 to 3")));
}

// Not when the recording ends, hours later.
TEST(ProfilerInARun, PlaceForTheTraceThatIsMissing_IsRefusedAtTheStart) {
  const std::string gone = MakeTempDir("profiled_tmp") + "/gone";
  setenv("TMPDIR", gone.c_str(), /*replace=*/1);
  const absl::Status opened = OpenTinyRun("CHECKPOINT: {DIR: " + MakeTempDir("profiled") +
                                          "}\nPROFILING: {RUNTIME_PROFILING: {USE_PROFILER: True}}\n")
                                  .status();
  unsetenv("TMPDIR");
  EXPECT_THAT(opened, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("test.yaml:2: config.PROFILING.RUNTIME_PROFILING.USE_PROFILER: hook "),
                                     HasSubstr(gone), HasSubstr("TMPDIR names another place"))));
}

TEST(ProfilerInARun, WhatHasThePlaceOfATrace_IsRefusedAtTheStart) {
  const std::string directory = MakeTempDir("taken");
  ASSERT_OK(PosixFileSystem().CreateDirectories(directory + "/profile/rank0_iterations_6-7.json"));
  ASSERT_OK(PosixFileSystem().CreateDirectories(directory + "/profile/rank0_iterations_9-10.json"));
  const auto started = [&](const std::string& first, const std::string& updates) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         OpenTinyRun("CHECKPOINT: {DIR: " + directory + "}\nPROFILING: {START_ITERATION: " + first +
                                     ", NUM_ITERATIONS: " + updates + ", RUNTIME_PROFILING: {USE_PROFILER: True}}\n"));
    return session->Start();
  };
  EXPECT_THAT(started("5", "2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hook 'profiler' (OnStart"), HasSubstr("in whose place is a directory: "),
                             HasSubstr("/profile/rank0_iterations_6-7.json, "))));
  EXPECT_OK(started("5", "3"));
  EXPECT_THAT(started("8", "5"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("_9-10.json")))
      << "the run ends with 10";
}

TEST(ProfilerInARun, Trace_ShowsTheRunWhichStaysTheSame) {
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(const TinyRunResult profiled,
                       TrainTinyRun("PROFILING: {START_ITERATION: 4, WARMUP_ITERATIONS: 1, NUM_ITERATIONS: 2, "
                                    "RUNTIME_PROFILING: {USE_PROFILER: True, RECORD_SHAPES: True}}"));
  EXPECT_EQ(profiled.state, plain.state);
  EXPECT_THAT(log.Text(), HasSubstr("profiler: updates 6 to 7, most of "));
  EXPECT_THAT(log.Text(), HasSubstr("  aten::"));
  const std::vector<Event> events = ReadTrace(profiled.directory + "/profile/rank0_iterations_6-7.json");
  EXPECT_THAT(StepsOf(events), ElementsAre("ProfilerStep#6", "ProfilerStep#7"));
  EXPECT_THAT(NamesOf(events), IsSupersetOf({"aten::convolution", "aten::add", "forward", "backward", "optimizer"}));
}

// LibTorch has one trace at a time for a process: the second virtual rank used to have none.
TEST(ProfilerInARun, VirtualRanksOfOneProcess_AreThreadsOfOneTrace) {
  const std::string directory = MakeTempDir("virtual");
  const std::unique_ptr<Communicator> process = MakeLocalCommunicator();
  CapturedLog log;
  ASSERT_OK(VirtualWorld(2, *process).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         OpenTinyRun("CHECKPOINT: {DIR: " + directory +
                                         "}\nPROFILING: {START_ITERATION: 1, NUM_ITERATIONS: 2, RUNTIME_PROFILING: "
                                         "{USE_PROFILER: True}}",
                                     std::move(options)));
    return session->Train().status();
  }));
  EXPECT_THAT(PosixFileSystem().List(directory + "/profile").value(), ElementsAre("rank0_iterations_2-3.json"));
  const std::vector<Event> events = ReadTrace(directory + "/profile/rank0_iterations_2-3.json");
  EXPECT_THAT(StepsOf(events), ElementsAre("ProfilerStep#2 rank0", "ProfilerStep#2 rank1", "ProfilerStep#3 rank0",
                                           "ProfilerStep#3 rank1"));
  const int64_t second = Find(events, "ProfilerStep#2 rank1").thread;
  EXPECT_NE(Find(events, "ProfilerStep#2 rank0").thread, second);
  std::vector<Event> of_second;
  for (const Event& event : events) {
    if (event.thread == second) of_second.push_back(event);
  }
  EXPECT_THAT(NamesOf(of_second), IsSupersetOf({"aten::convolution", "forward", "loss", "backward", "optimizer"}));
  EXPECT_THAT(log.Text(), HasSubstr("ranks 0, 1 are threads of one process, and all in it"));
}

}  // namespace
}  // namespace ssl
