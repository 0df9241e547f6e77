// SPDX-License-Identifier: Apache-2.0
//
// What a start says of the checkpoints that it finds, once, what it clears away, and what the end of a run leaves.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/register_core.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Lines : public CapturedLog {
 public:
  int64_t With(absl::string_view part) const {
    return std::count_if(lines.begin(), lines.end(),
                         [part](const auto& line) { return absl::StrContains(line, part); });
  }
};

class ResumeStartTest : public ::testing::Test {
 protected:
  ResumeStartTest() : config_(FakeConfig(run_)) {
    EXPECT_OK(RegisterFakes(&registries_));
    Set("CHECKPOINT.SAVE_IN_BACKGROUND", "false");
  }

  // Saves every 5 steps, and stops at `stop_at`, if it is not below 0; calls `at_step` at each.
  absl::Status Train(int64_t stop_at = -1, FileSystem& file_system = PosixFileSystem(),
                     const std::function<void(int64_t)>& at_step = nullptr) {
    SessionOptions options;
    options.file_system = &file_system;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config_, registries_, std::move(options)));
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("save", HookStage::kPersist, &events);
    hook->At("OnStep", [&](StepContext& context) {
      const int64_t iteration = context.state.iteration;
      if (at_step != nullptr) at_step(iteration);
      if (iteration == stop_at) context.stop.Request(kStopTerminate);
      return iteration % 5 == 0 ? context.checkpoints->Save() : absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(session->AddHook(std::move(hook)));
    return session->Train().status();
  }

  // As a program starts: it asks before it builds anything.
  absl::Status CheckAndStart() {
    Registries registries = registries_;
    SSL_RETURN_IF_ERROR(RegisterCore(&registries));
    SSL_ASSIGN_OR_RETURN(const ConfigNode resolved, ResolveConfig(config_, registries));
    SSL_RETURN_IF_ERROR(CheckResume(resolved, registries.options, files_, *MakeLocalCommunicator()).status());
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config_, registries_, {}));
    return session->Start();
  }

  void Set(const std::string& key, const std::string& value) { config_.SetPath(key, ConfigNode::Scalar(value)); }
  std::string Path(const std::string& name) { return absl::StrCat(run_, "/checkpoints/", name); }
  std::vector<std::string> Names() { return *files_.List(run_ + "/checkpoints"); }

  FileSystem& files_ = PosixFileSystem();
  const std::string run_ = MakeTempDir("resume_start");
  Registries registries_;
  ConfigNode config_;
};

TEST_F(ResumeStartTest, WhatChanged_IsLoggedOnce) {
  ASSERT_OK(Train(10));
  Set("LOG_FREQUENCY", "3");
  const Lines log;
  ASSERT_OK(CheckAndStart());
  EXPECT_EQ(log.With("LOG_FREQUENCY"), 1);
}

TEST_F(ResumeStartTest, DamagedCheckpoint_IsToldOfOnce) {
  ASSERT_OK(Train(10));
  std::string model = *files_.Read(Path("step_10/model.safetensors"));
  model.back() ^= 1;
  ASSERT_OK(WriteFileAtomically(files_, Path("step_10/model.safetensors"), model));
  const Lines log;
  ASSERT_OK(CheckAndStart());
  EXPECT_EQ(log.With("damaged checkpoint passed over"), 1);
}

TEST_F(ResumeStartTest, OverwriteExistingOfTheSameRun_IsToldOfOnce) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train(10));
  const Lines log;
  ASSERT_OK(CheckAndStart());
  EXPECT_EQ(log.With("nothing is overwritten"), 1);
}

TEST_F(ResumeStartTest, GoingBackOnce_IsToldOfOnce) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train(10));
  Set("CHECKPOINT.RESUME_FROM", "5");
  ASSERT_OK(Train(15));
  const Lines log;
  ASSERT_OK(CheckAndStart());
  EXPECT_EQ(log.With("has gone back to iteration 5 already"), 1);
}

// By a copy that went wrong, for one.
TEST_F(ResumeStartTest, FileWithTheNameOfACheckpoint_IsDamaged) {
  ASSERT_OK(Train(10));
  ASSERT_OK(WriteFileAtomically(files_, Path("step_50"), "no directory"));
  {
    const Lines log;
    ASSERT_OK(CheckAndStart());
    EXPECT_EQ(log.With("step_50: is no checkpoint"), 2) << "passed over, and set aside";
  }
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_5", "step_50.damaged"));
  ASSERT_OK(WriteFileAtomically(files_, Path("step_15"), "no directory"));
  ASSERT_OK(Train());
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_15", "step_20", "step_50.damaged"));
}

TEST_F(ResumeStartTest, NotesThatAKilledProcessWasWriting_AreRemoved) {
  ASSERT_OK(Train(10));
  for (const char* name : {"LATEST.tmp-17", "FINISHED.tmp-4711", "step_15.tmp", "notes.txt"}) {
    ASSERT_OK(WriteFileAtomically(files_, Path(name), "step_5\n"));
  }
  ASSERT_OK(CheckAndStart());
  EXPECT_THAT(Names(), ElementsAre("LATEST", "notes.txt", "step_10", "step_5"));
}

// The steps and saves between try again, and say nothing more.
TEST_F(ResumeStartTest, DirectoryInThePlaceOfLatest_IsToldOncePerSave) {
  for (const char* in_background : {"false", "true"}) {
    Set("CHECKPOINT.SAVE_IN_BACKGROUND", in_background);
    ASSERT_OK(files_.RemoveAll(run_));
    ASSERT_OK(files_.CreateDirectories(Path("LATEST")));
    const Lines log;
    ASSERT_OK(Train());
    for (const char* step : {"step_5 is saved; ", "step_10 is saved; ", "step_15 is saved; ", "step_20 is saved; "}) {
      EXPECT_EQ(log.With(step), 1) << step << log.Text();
    }
  }
}

// Else the end of a long run would be the first to find it.
TEST_F(ResumeStartTest, DirectoryInThePlaceOfFinished_IsFoundAtTheStart) {
  const auto is_refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("/FINISHED: is in the way, and a file is needed there; move it away"));
  ASSERT_OK(files_.CreateDirectories(Path("FINISHED/notes")));
  EXPECT_THAT(Train(), is_refused);
  ASSERT_OK(files_.RemoveAll(Path("FINISHED")));
  ASSERT_OK(Train(10));
  ASSERT_OK(files_.CreateDirectories(Path("FINISHED/notes")));
  EXPECT_THAT(Train(), is_refused);
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_10", "step_5"));
}

// Whatever fails once in the last save: when the run ends well, LATEST names its last checkpoint.
TEST_F(ResumeStartTest, EndOfARun_LeavesItTidy) {
  int survived = 0;
  bool failed = true;
  for (int call = 1; failed; ++call) {
    ASSERT_OK(files_.RemoveAll(run_));
    ASSERT_OK(files_.CreateDirectories(run_));
    FaultFileSystem faulty(files_, run_);
    const absl::Status status = Train(-1, faulty, [&](int64_t iteration) {
      if (iteration == 20) faulty.FailCall(faulty.calls() + call, EACCES, FaultFileSystem::Repeat::kOnce);
    });
    failed = faulty.failed_calls() > 0;
    if (!status.ok()) continue;
    survived += failed ? 1 : 0;
    EXPECT_EQ(*files_.Read(Path("LATEST")), "step_20\n") << "call " << call;
    EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_15", "step_20")) << "call " << call;
  }
  EXPECT_GE(survived, 5) << "LATEST is written, renamed and synced, and step_10 renamed and removed";
}

}  // namespace
}  // namespace ssl
