// SPDX-License-Identifier: Apache-2.0
//
// What a session does with the checkpoints that it finds: the rules of docs/checkpoints.md.
#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>

#include <errno.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/component.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/core/testing/resume_fixture.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ResumeRulesTest, DamagedNewestOfAFinishedRun_IsTrainedAndSavedAnew) {
  EXPECT_THAT(Train(), IsOkAndHolds(0));
  const uint32_t expected = hash_;
  ASSERT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_15", "step_20"));
  Damage(20);

  EXPECT_THAT(Train(), IsOkAndHolds(15));

  EXPECT_EQ(hash_, expected);
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_15", "step_20"));
  EXPECT_THAT(Train(), IsOkAndHolds(20));
  EXPECT_EQ(hash_, expected);
}

TEST_F(ResumeRulesTest, DamagedCheckpoint_IsKeptAsideUntilThen) {
  ASSERT_OK(Train());
  Damage(20);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  ASSERT_OK(session->Start());
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_15", "step_20.damaged"));
  EXPECT_EQ(*files_.Read(run_ + "/checkpoints/LATEST"), "step_15\n");
}

TEST_F(ResumeRulesTest, AllDamaged_IsNeverASilentNewStart) {
  ASSERT_OK(Train());
  Damage(20);
  Damage(15);
  EXPECT_THAT(Train().status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no checkpoint is intact")));
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_15", "step_20"));
}

TEST_F(ResumeRulesTest, AutoResumeOff_RefusesAUsedDirectoryAndChangesNothing) {
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  Set("CHECKPOINT.AUTO_RESUME", "false");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("config.CHECKPOINT.AUTO_RESUME is false"), HasSubstr("step_10"),
                                     HasSubstr("AUTO_RESUME=True"), HasSubstr("OVERWRITE_EXISTING=True"),
                                     HasSubstr("another config.CHECKPOINT.DIR"))));
  EXPECT_EQ(Names(), before);
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  EXPECT_THAT(Train(10), IsOkAndHolds(0));
  // With AUTO_RESUME off it begins anew each time, its own unfinished run included.
  EXPECT_THAT(Train(), IsOkAndHolds(0));
}

TEST_F(ResumeRulesTest, AutoResumeOff_TrainsInANewDirectory) {
  Set("CHECKPOINT.AUTO_RESUME", "false");
  EXPECT_THAT(Train(), IsOkAndHolds(0));
}

TEST_F(ResumeRulesTest, OverwriteExisting_GoesOnWithItsOwnRunOnly) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  EXPECT_THAT(Train(7), IsOkAndHolds(0));
  // Settings that may change do not make it another run.
  Set("LOG_FREQUENCY", "3");
  EXPECT_THAT(Train(), IsOkAndHolds(7));
  const uint32_t expected = hash_;
  // Finished: what followed the training may have been stopped.
  EXPECT_THAT(Train(), IsOkAndHolds(20));
  EXPECT_EQ(hash_, expected);
  Set("SEED_VALUE", "5");
  EXPECT_THAT(Train(), IsOkAndHolds(0));
  EXPECT_NE(hash_, expected);
}

// Such as a missing permission, or too many open files: none of them says that the run is another one.
TEST_F(ResumeRulesTest, OverwriteExisting_RemovesNothingForAnErrorOfThePlace) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  for (int call = 1; call <= 12; ++call) {
    FaultFileSystem faults(files_, run_);
    faults.set_fault_reads(true);
    faults.FailCall(call, EACCES, FaultFileSystem::Repeat::kFromThenOn);
    SessionOptions options;
    options.file_system = &faults;
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(config_, registries_, std::move(options));
    EXPECT_FALSE(session.ok() && (*session)->removed_earlier_run()) << call;
    EXPECT_EQ(Names(), before) << call;
  }
}

// Of a hook and a sink that the run may or may not have.
struct LeavingOptions : public ComponentOptions {
  absl::string_view section() const override { return ""; }
  bool enabled() const override { return false; }
};
struct DrawingOptions : public LeavingOptions {
  std::vector<std::string> leaves() const override {
    return {"drawn/iteration_*", "deep/er/trace*", "linked/rank*", "linked_too/deep/rank*"};
  }
};
struct LinesOptions : public LeavingOptions {
  std::vector<std::string> leaves() const override { return {"lines.jsonl", "kept*", "folder"}; }
};

TEST_F(ResumeRulesTest, OverwriteExisting_RemovesWhatHooksAndSinksSayThatTheyLeave) {
  registries_.hook_components["drawing"] = {"drawing", "", 0, [] { return std::make_unique<DrawingOptions>(); }};
  registries_.sink_components["lines"] = {"lines", "", 0, [] { return std::make_unique<LinesOptions>(); }};
  ASSERT_OK(Train(10));
  const std::string elsewhere = MakeTempDir("elsewhere");
  ASSERT_OK(WriteFileAtomically(files_, elsewhere + "/rank0_iterations_2-4.json", "of another run"));
  ASSERT_OK(files_.CreateDirectories(elsewhere + "/deep"));
  ASSERT_OK(WriteFileAtomically(files_, elsewhere + "/deep/rank0.json", "of another run"));
  for (const char* name : {"/linked", "/linked_too"}) {
    ASSERT_EQ(symlink(elsewhere.c_str(), absl::StrCat(run_, name).c_str()), 0);
  }
  for (const char* name : {"lines.jsonl", "results.json", "log.txt", "drawn/iteration_5/res5.png", "drawn/job-7.out",
                           "deep/er/trace.json", "kept.txt", "folder/file", "export/model.pt"}) {
    const std::string path = absl::StrCat(run_, "/", name);
    ASSERT_OK(files_.CreateDirectories(ParentDirectory(path)));
    ASSERT_OK(WriteFileAtomically(files_, path, "old"));
  }
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  EXPECT_TRUE(session->removed_earlier_run());
  ASSERT_OK(session->Start());
  EXPECT_THAT(*files_.List(run_), ElementsAre(".lock", "checkpoints", "deep", "drawn", "export", "kept.txt", "log.txt"))
      << "a '*' stands for names in a folder";
  EXPECT_THAT(*files_.List(run_ + "/drawn"), ElementsAre("job-7.out")) << "what others keep there stays";
  EXPECT_TRUE(files_.List(run_ + "/deep")->empty());
  EXPECT_THAT(*files_.List(elsewhere), ElementsAre("deep", "rank0_iterations_2-4.json"));
  EXPECT_THAT(*files_.List(elsewhere + "/deep"), ElementsAre("rank0.json"));
  EXPECT_TRUE(Names().empty());
}

TEST_F(ResumeRulesTest, OverwriteExisting_RemovesNothingWhenTheNewRunCannotBeBuilt) {
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  Set("SEED_VALUE", "5");
  registries_.initialize_weights = [](Model&, const BuildContext&) { return absl::NotFoundError("no such weights"); };
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(Names(), before);
}

// A host's hook that draws from LibTorch's generator when a phase starts.
TEST_F(ResumeRulesTest, WhatIsDrawnAtTheStartOfAPhase_IsTheSameAfterAResume) {
  const auto draws = [this](int64_t stop_at) {
    std::vector<float> drawn;
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("draw", HookStage::kPersist, &events);
    hook->At("OnPhaseStart", [&drawn](StepContext&) {
      drawn.push_back(at::rand({1}).item<float>());
      return absl::OkStatus();
    });
    auto stop = std::make_unique<RecordingHook>("stop", HookStage::kReport, &events);
    stop->At("OnStep", [stop_at](StepContext& context) {
      if (context.state.iteration == stop_at) context.stop.Request(kStopTerminate);
      return absl::OkStatus();
    });
    absl::StatusOr<std::unique_ptr<Session>> session = Make();
    EXPECT_OK(session.status());
    EXPECT_OK((*session)->AddHook(std::move(hook)));
    EXPECT_OK((*session)->AddHook(std::move(stop)));
    EXPECT_OK((*session)->Train().status());
    return drawn;
  };
  const std::vector<float> uninterrupted = draws(-1);
  ASSERT_EQ(uninterrupted.size(), 2u);
  ASSERT_OK(files_.RemoveAll(run_));
  EXPECT_THAT(draws(4), ElementsAre(uninterrupted[0]));
  EXPECT_EQ(draws(-1), uninterrupted);
}

TEST_F(ResumeRulesTest, OtherSettings_AreRefusedBeforeAnythingChanges) {
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  Set("SEED_VALUE", "5");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("SEED_VALUE: 0 in the checkpoint, 5 now (built in)")));
  EXPECT_EQ(Names(), before);
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"SEED_VALUE"}));
  EXPECT_THAT(Train(15), IsOkAndHolds(10));
  // What was accepted is what the run has now.
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({}));
  EXPECT_THAT(Train(), IsOkAndHolds(15));
}

TEST_F(ResumeRulesTest, CheckResume_TellsBeforeAnythingIsBuilt) {
  EXPECT_OK(Check());
  ASSERT_OK(Train(10));
  EXPECT_OK(Check());
  Set("SEED_VALUE", "5");
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SEED_VALUE: 0 in the checkpoint, 5")));
  Set("CHECKPOINT.AUTO_RESUME", "false");
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AUTO_RESUME is false")));
}

// The checkpoint that the run went back to may be gone by then.
TEST_F(ResumeRulesTest, CheckResume_KnowsThatARunHasGoneBackAlready) {
  ASSERT_OK(Train(10));
  Set("CHECKPOINT.KEEP_LAST", "1");
  Set("CHECKPOINT.RESUME_FROM", "5");
  EXPECT_THAT(Train(17), IsOkAndHolds(5));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_17"));
  EXPECT_OK(Check());
  EXPECT_THAT(Train(), IsOkAndHolds(17));
}

TEST_F(ResumeRulesTest, SettingsOfTheOperation_MayChange) {
  ASSERT_OK(Train(10));
  Set("LOG_FREQUENCY", "3");
  Set("CHECKPOINT.KEEP_LAST", "1");
  Set("CHECKPOINT.SAVE_IN_BACKGROUND", "false");
  EXPECT_THAT(Train(), IsOkAndHolds(10));
  EXPECT_THAT(Names(), ElementsAre("FINISHED", "LATEST", "step_20"));
}

TEST_F(ResumeRulesTest, MovedRun_GoesOn) {
  ASSERT_OK(Train(10));
  const std::string moved = run_ + "_moved";
  ASSERT_OK(files_.Rename(run_, moved));
  Set("CHECKPOINT.DIR", moved);
  EXPECT_THAT(Train(), IsOkAndHolds(10));
  ASSERT_OK(files_.RemoveAll(moved));
}

TEST_F(ResumeRulesTest, NumberOfEpochs_ChangesWhenAllowed_AndNeverEndsBeforeTheCheckpoint) {
  ASSERT_OK(Train());
  Set("OPTIMIZER.num_epochs", "3");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("OPTIMIZER.num_epochs: 2 in the checkpoint, 3 now")));
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"OPTIMIZER.num_epochs"}));
  EXPECT_THAT(Train(), IsOkAndHolds(20));
  Set("OPTIMIZER.num_epochs", "1");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("behind the end of this run: iteration 30 of 10")));
}

TEST_F(ResumeRulesTest, OtherNumberOfSamples_IsNoticed) {
  ASSERT_OK(Train(10));
  SessionOptions options;
  options.train_source = std::make_unique<FakeSource>(44, 4, 0, 1);
  EXPECT_THAT(
      Session::Create(config_, registries_, std::move(options)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DATA.TRAIN.num_samples: 40 in the checkpoint, 44 now")));
}

TEST_F(ResumeRulesTest, OtherNumberOfRanks_NeedsAsManySamples) {
  ASSERT_OK(Train(10));
  const absl::Status status = ThreadWorld(2, absl::Seconds(30)).Run([this](Communicator& communicator) {
    SessionOptions options;
    options.communicator = &communicator;
    return Session::Create(config_, registries_, std::move(options)).status();
  });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("saved by 1 rank that takes 4 samples in an update, and would go on with 2 that "
                                 "take 8")));
}

TEST_F(ResumeRulesTest, CheckpointFromBeforeSettingsWereRecorded_IsRefusedWithTheWayOut) {
  ASSERT_OK(Train(10));
  for (const int64_t iteration : {5, 10}) {
    const std::string path = Step(iteration) + "/MANIFEST.json";
    ASSERT_OK_AND_ASSIGN(Manifest manifest, ParseManifest(*files_.Read(path), path));
    manifest.files.pop_back();
    ASSERT_OK(WriteFileAtomically(files_, path, ManifestToJson(manifest)));
    ASSERT_OK(files_.RemoveFile(Step(iteration) + "/config.json"));
  }
  EXPECT_THAT(Train().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr("older version"), HasSubstr("WEIGHTS_INIT.PARAMS_FILE"))));
}

TEST_F(ResumeRulesTest, ResumeFrom_GoesBackAndSetsNewerOnesAside) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train());
  const uint32_t expected = hash_;
  Set("CHECKPOINT.RESUME_FROM", "10");
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
    ASSERT_OK(session->Start());
    EXPECT_EQ(session->state().iteration, 10);
    EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15.set_aside", "step_20.set_aside", "step_5"));
  }
  EXPECT_THAT(Train(15), IsOkAndHolds(10));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15", "step_20.set_aside", "step_5"));
  // The same command after a stop goes on.
  EXPECT_THAT(Train(), IsOkAndHolds(15));
  EXPECT_EQ(hash_, expected);
}

TEST_F(ResumeRulesTest, ResumeFrom_NamesTheStepsThatExist) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train(10));
  Set("CHECKPOINT.RESUME_FROM", "7");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("config.CHECKPOINT.RESUME_FROM is 7"),
                                                                  HasSubstr("checkpoints: 5, 10"))));
  Set("CHECKPOINT.RESUME_FROM", "5");
  Damage(5);
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step_5")));
  Set("CHECKPOINT.AUTO_RESUME", "false");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contradicts")));
}

// The way back out of a run whose newest checkpoint holds NaN, saved before such states were refused.
TEST_F(ResumeRulesTest, ResumeFrom_LeavesACheckpointThatIsNotFinite) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train(15));
  const std::string path = Step(15) + "/model.safetensors";
  ASSERT_OK_AND_ASSIGN(SafetensorsContent content, ReadSafetensors(path));
  content.tensors[0].tensor.fill_(std::nan(""));
  ASSERT_OK_AND_ASSIGN(const FileDigest digest, WriteSafetensors(files_, path, content.tensors, {}));
  const std::string manifest_path = Step(15) + "/MANIFEST.json";
  ASSERT_OK_AND_ASSIGN(Manifest manifest, ParseManifest(*files_.Read(manifest_path), manifest_path));
  manifest.files[0].crc32c = digest.crc32c;
  ASSERT_OK(WriteFileAtomically(files_, manifest_path, ManifestToJson(manifest)));
  EXPECT_THAT(Train().status(), StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("model/weight (48 of 48 values)"),
                                                                            HasSubstr("RESUME_FROM=STEP"))));
  Set("CHECKPOINT.RESUME_FROM", "10");
  EXPECT_THAT(Train(), IsOkAndHolds(10));
}

TEST_F(ResumeRulesTest, DivergedRun_EndsWithoutSavingAndGoesBack) {
  ASSERT_OK(Train(10));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("poison", HookStage::kObserve, &events);
  hook->At("OnStep", [](StepContext& context) {
    context.model.Parameters()[0].value.detach().fill_(std::nan(""));
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));
  EXPECT_THAT(session->Train(), StatusIs(absl::StatusCode::kOutOfRange,
                                         AllOf(HasSubstr("model/weight (48 of 48 values)"), HasSubstr("step_10"))));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_5"));
}

}  // namespace
}  // namespace ssl
