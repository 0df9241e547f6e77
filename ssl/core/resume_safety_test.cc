// SPDX-License-Identifier: Apache-2.0
//
// What a start must not throw away, what it must not take for something else, and what it relies on.
#include <ATen/ops/ones.h>
#include <errno.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/metrics.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/core/testing/resume_fixture.h"
#include "ssl/io/testing/fault_file_system.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class ResumeSafetyTest : public ResumeRulesTest {
 protected:
  // Starts once for each file call of a start, with that call, or all from it on, failing; `expect` looks at the names.
  void FailEachCall(const std::vector<int>& errors) {
    const std::vector<std::string> before = Names();
    for (const int error : errors) {
      for (const auto repeat : {FaultFileSystem::Repeat::kOnce, FaultFileSystem::Repeat::kFromThenOn}) {
        for (int call = 1; call <= 40; ++call) {
          FaultFileSystem faults(files_, run_);
          faults.set_fault_reads(true);
          faults.FailCall(call, error, repeat);
          SessionOptions options;
          options.file_system = &faults;
          const auto session = Session::Create(config_, registries_, std::move(options));
          if (faults.failed_calls() == 0) break;
          EXPECT_FALSE(session.ok() && (*session)->removed_earlier_run()) << "errno " << error << ", call " << call;
          if (session.ok()) (*session)->Start().IgnoreError();  // a call of its own may be the one that fails
          ASSERT_EQ(Names(), before) << "errno " << error << ", call " << call << ": " << session.status();
        }
      }
    }
  }
};

// Half the batch and twice the accumulation after memory ran out, in a script that always overwrites.
TEST_F(ResumeSafetyTest, OverwriteExisting_GoesOnWithChangesThatAreAllowed) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train(10));
  Set("SEED_VALUE", "5");
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"SEED_VALUE"}));
  EXPECT_THAT(Train(15), IsOkAndHolds(10));
}

// The same settings, and an image more in the folder.
TEST_F(ResumeSafetyTest, OverwriteExisting_RefusesTheSameRunOfOtherData) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  SessionOptions options;
  options.train_source = std::make_unique<FakeSource>(41, 4, 0, 1);
  EXPECT_THAT(Session::Create(config_, registries_, std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("num_samples: 40"), HasSubstr("OVERWRITE_EXISTING=True "),
                             HasSubstr("AUTO_RESUME=False"))));
  EXPECT_EQ(Names(), before);
}

TEST_F(ResumeSafetyTest, ResumeFrom_DoesNotGoBackAgainForAChangeThatIsAllowed) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train());
  Set("CHECKPOINT.RESUME_FROM", "10");
  ASSERT_OK(Train());
  Set("OPTIMIZER.num_epochs", "3");
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"OPTIMIZER.num_epochs"}));
  EXPECT_THAT(Train(), IsOkAndHolds(20));
}

TEST_F(ResumeSafetyTest, OverwriteExisting_RemovesNothingForAFileThatCannotBeRead) {
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  ASSERT_OK(Train(10));
  FailEachCall({EIO, EACCES, EMFILE});
}

TEST_F(ResumeSafetyTest, ResumeFrom_DoesNotGoBackAgainForAFileThatCannotBeRead) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train());
  Set("CHECKPOINT.RESUME_FROM", "10");
  ASSERT_OK(Train());
  FailEachCall({EIO, EACCES, EMFILE});
}

TEST_F(ResumeSafetyTest, CheckpointThatCannotBeRead_IsNeitherDamagedNorPassedOver) {
  ASSERT_OK(Train(10));
  FailEachCall({EIO});
}

TEST_F(ResumeSafetyTest, WeightsInsideTheRunThatGoes_AreRefused) {
  Set("CHECKPOINT.KEEP_LAST", "0");
  ASSERT_OK(Train(10));
  const std::vector<std::string> before = Names();
  Set("CHECKPOINT.OVERWRITE_EXISTING", "true");
  Set("SEED_VALUE", "5");
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", run_ + "/../" + run_.substr(run_.rfind('/') + 1) + "/checkpoints/step_10");
  EXPECT_THAT(Make(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("PARAMS_FILE"), HasSubstr("OVERWRITE_EXISTING"))));
  EXPECT_EQ(Names(), before);
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", run_ + "_of_another/step_10");  // a name that only begins like it
  EXPECT_OK(Make());
}

TEST_F(ResumeSafetyTest, FinishedRunThatGoesOn_IsNotFinished) {
  ASSERT_OK(Train());
  EXPECT_THAT(Names(), Contains("FINISHED"));
  EXPECT_THAT(Train(), IsOkAndHolds(20));
  EXPECT_THAT(Names(), Contains("FINISHED"));
  Set("OPTIMIZER.num_epochs", "3");
  config_.SetPath("CHECKPOINT.ALLOW_CHANGES", ConfigNode::FromStrings({"OPTIMIZER.num_epochs"}));
  EXPECT_THAT(Train(25), IsOkAndHolds(20));
  EXPECT_THAT(Names(), Not(Contains("FINISHED")));
}

TEST_F(ResumeSafetyTest, FeaturesBeforeTheRestore_AreRefused) {
  ASSERT_OK(Train(10));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  const at::Tensor images = at::ones({2, 1, 4, 4});
  EXPECT_THAT(session->Features(images, {{"res5", {}}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Start()")));
  ASSERT_OK(session->Start());
  EXPECT_OK(session->Features(images, {{"res5", {}}}));
}

// Whether what it was given was on disk when a checkpoint came to be.
class DurableSink : public MetricSink {
 public:
  DurableSink(std::string checkpoint, std::vector<std::string>* events)
      : checkpoint_(std::move(checkpoint)), events_(*events) {}
  absl::Status Write(const MetricReport&) override {
    events_.emplace_back("written");
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    events_.emplace_back(PosixFileSystem().Exists(checkpoint_) ? "durable after" : "durable before");
    return absl::OkStatus();
  }

 private:
  const std::string checkpoint_;
  std::vector<std::string>& events_;
};

// A run that goes on from it does not tell them again.
TEST_F(ResumeSafetyTest, ReportsOfAnEvent_AreDurableBeforeTheCheckpointOfIt) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Make());
  std::vector<std::string> events;
  auto hook = std::make_unique<RecordingHook>("reports", HookStage::kPersist, &events);
  hook->At("OnPhaseEnd", [&events](StepContext& context) -> absl::Status {
    events.clear();
    SSL_RETURN_IF_ERROR(context.metrics.Write({10, 0, {{"a", 1.0}}}, context.communicator));
    return context.checkpoints->Save();
  });
  session->metrics().AddSink(std::make_unique<DurableSink>(Step(10), &events));
  ASSERT_OK(session->AddHook(std::move(hook)));
  while (session->state().iteration < 11) ASSERT_OK(session->Step());
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0], "written");
  EXPECT_EQ(events[1], "durable before");
}

}  // namespace
}  // namespace ssl
