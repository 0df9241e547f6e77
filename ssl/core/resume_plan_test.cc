// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/resume_plan.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/core_options.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/testing/resume_fixture.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A run of checkpoints 5, 10, 15 and 20, of which the last two are kept.
class ResumePlanTest : public ResumeRulesTest {
 protected:
  absl::StatusOr<ResumePlan> Plan(int64_t world_size = 1) {
    Registries registries = registries_;
    SSL_RETURN_IF_ERROR(RegisterCore(&registries));
    SSL_ASSIGN_OR_RETURN(const ConfigNode resolved, ResolveConfig(config_, registries));
    SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(resolved));
    RunIdentity identity(resolved, registries.options, options.checkpoint.allow_changes);
    const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
    const CheckpointStore store({CheckpointDirectory(run_), 2, ""}, counted_, *alone);
    return MakeResumePlan(options.checkpoint, identity, store, world_size);
  }

  FaultFileSystem counted_{files_, run_};  // counts what would change anything
};

TEST_F(ResumePlanTest, WithoutCheckpoints_IsANewRunWhateverIsSet) {
  for (const char* auto_resume : {"true", "false"}) {
    for (const char* overwrite : {"true", "false"}) {
      Set("CHECKPOINT.AUTO_RESUME", auto_resume);
      Set("CHECKPOINT.OVERWRITE_EXISTING", overwrite);
      ASSERT_OK_AND_ASSIGN(const ResumePlan plan, Plan());
      EXPECT_EQ(plan.iteration, -1);
      EXPECT_FALSE(plan.removes_earlier) << "there is nothing";
      EXPECT_EQ(plan.warning, "");
      EXPECT_THAT(plan.notes, IsEmpty());
    }
  }
}

TEST_F(ResumePlanTest, NewestIntactOne_IsGoneOnFrom) {
  ASSERT_OK(Train());
  ASSERT_OK_AND_ASSIGN(const ResumePlan plan, Plan());
  EXPECT_EQ(plan.iteration, 20);
  EXPECT_FALSE(plan.removes_earlier);
  EXPECT_EQ(plan.warning, "");
}

TEST_F(ResumePlanTest, DamagedNewest_IsAWarningThatNamesIt) {
  ASSERT_OK(Train());
  Damage(20);
  ASSERT_OK_AND_ASSIGN(ResumePlan plan, Plan());
  EXPECT_EQ(plan.iteration, 15);
  EXPECT_THAT(plan.warning, HasSubstr("step_20"));
  // Going back on purpose to an older one says nothing about the newest.
  Set("CHECKPOINT.RESUME_FROM", "15");
  ASSERT_OK_AND_ASSIGN(plan, Plan());
  EXPECT_EQ(plan.iteration, 15);
  EXPECT_EQ(plan.warning, "");
}

TEST_F(ResumePlanTest, OtherSettings_AreNamedOrNoted) {
  ASSERT_OK(Train());
  Set("LOG_FREQUENCY", "3");
  ASSERT_OK_AND_ASSIGN(const ResumePlan plan, Plan());
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("LOG_FREQUENCY: 10 in the checkpoint, 3 now")));
  Set("SEED_VALUE", "5");
  EXPECT_THAT(Plan(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SEED_VALUE: 0 in the checkpoint, 5")));
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK_AND_ASSIGN(const ResumePlan anew, Plan());
  EXPECT_TRUE(anew.removes_earlier);
  EXPECT_EQ(anew.iteration, -1);
}

TEST_F(ResumePlanTest, OtherWorldWithAnotherGlobalBatch_IsRefusedAndOverwritten) {
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "6");
  ASSERT_OK(Train());
  EXPECT_THAT(Plan(/*world_size=*/2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("was saved by 1 rank that takes 6 samples in an update, and would go on with 2 "
                                       "that take 12"),
                             HasSubstr("set config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=3"), HasSubstr("CHECKPOINT.DIR"))));
  EXPECT_THAT(Plan(/*world_size=*/4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a number of ranks that divides 6,")));
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"DATA.TRAIN"}));
  EXPECT_THAT(Plan(/*world_size=*/2), StatusIs(absl::StatusCode::kInvalidArgument)) << "nothing allows another place";
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK_AND_ASSIGN(const ResumePlan anew, Plan(/*world_size=*/2));
  EXPECT_TRUE(anew.removes_earlier) << "a run of other updates is another run";
}

TEST_F(ResumePlanTest, OtherWorldWithTheSameGlobalBatch_GoesOn) {
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "6");
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train());
  Set("CHECKPOINT.OVERWRITE_EXISTING", "false");
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "3");
  ASSERT_OK_AND_ASSIGN(ResumePlan plan, Plan(/*world_size=*/2));
  EXPECT_EQ(plan.iteration, 20);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("BATCHSIZE_PER_REPLICA: 6 in the checkpoint, 3 now")));
  EXPECT_THAT(Plan(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ALLOW_CHANGES")))
      << "a batch of its own is no consequence of the ranks";
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK_AND_ASSIGN(plan, Plan(/*world_size=*/2));
  EXPECT_FALSE(plan.removes_earlier) << "it is the same run";
}

TEST_F(ResumePlanTest, FewerRanks_MayAccumulateInstead) {
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "16");
  ASSERT_OK(Train());
  Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "2");
  Set("OPTIMIZER.grad_acc_steps", "2");
  EXPECT_THAT(Plan(/*world_size=*/2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("BATCHSIZE_PER_REPLICA=4, or start a new run")));
  Set("OPTIMIZER.grad_acc_steps", "4");
  EXPECT_OK(Plan(/*world_size=*/2));
}

TEST_F(ResumePlanTest, OverwritingTheSameRun_GoesOnAndSaysSo) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train());
  ASSERT_OK_AND_ASSIGN(ResumePlan plan, Plan());
  EXPECT_EQ(plan.iteration, 20);
  EXPECT_FALSE(plan.removes_earlier);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("the run goes on, and nothing is overwritten")));
  // What cannot be gone on from is no run to keep.
  Damage(20);
  Damage(15);
  ASSERT_OK_AND_ASSIGN(plan, Plan());
  EXPECT_TRUE(plan.removes_earlier);
  EXPECT_THAT(plan.warning, Not(HasSubstr("goes on")));
}

TEST_F(ResumePlanTest, MakingIt_ReadsOnlyAndLogsNothing) {
  ASSERT_OK(Train());
  Damage(20);
  const std::vector<std::string> names = Names();
  const CapturedLog log;
  for (const char* overwrite : {"false", "true"}) {
    for (const char* from : {"-1", "15", "20", "7"}) {
      Set("CHECKPOINT.OVERWRITE_EXISTING", overwrite);
      Set("CHECKPOINT.RESUME_FROM", from);
      Plan().status().IgnoreError();
    }
  }
  Set("CHECKPOINT.RESUME_FROM", "-1");
  Set("CHECKPOINT.AUTO_RESUME", "false");
  Plan().status().IgnoreError();
  EXPECT_EQ(counted_.calls(), 0);
  EXPECT_THAT(log.lines, IsEmpty());
  EXPECT_EQ(Names(), names);
}

}  // namespace
}  // namespace ssl
