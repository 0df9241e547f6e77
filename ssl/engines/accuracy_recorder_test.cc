// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/accuracy_recorder.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/meter.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AccuracyRecorderTest : public ::testing::Test {
 protected:
  void EndPhase(bool training, int64_t epoch, std::vector<MeterReport> reports) {
    step_.state.training = training;
    step_.state.train_phase_index = epoch;
    step_.context.meter_reports = std::move(reports);
    ASSERT_OK(recorder_.OnPhaseEnd(step_.context));
  }

  static MeterReport Accuracy(double top1, double top5) {
    return {"accuracy_list_meter", {{"top_1", "0", top1}, {"top_5", "0", top5}, {"top_1", "1", 0.0}}};
  }

  FakeStep step_;
  AccuracyRecorder recorder_;
};

TEST_F(AccuracyRecorderTest, TestPhases_AreRemembered) {
  EndPhase(true, 0, {Accuracy(10.0, 20.0)});
  EXPECT_THAT(recorder_.epochs(), IsEmpty());
  EndPhase(false, 0, {{"other_meter", {}}, Accuracy(50.0, 75.0)});
  EndPhase(false, 1, {Accuracy(62.5, 100.0)});
  EXPECT_THAT(recorder_.epochs(), ElementsAre(1, 2));
  EXPECT_THAT(recorder_.top1(), ElementsAre(0.5, 0.625));
  EXPECT_THAT(recorder_.top5(), ElementsAre(0.75, 1.0));
  EXPECT_THAT(recorder_.Table(), HasSubstr("2        62.50%  100.00%\n"));
}

TEST_F(AccuracyRecorderTest, ResumedRuns_KeepTheirs) {
  EndPhase(false, 0, {Accuracy(50.0, 75.0)});
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(recorder_));
  AccuracyRecorder resumed;
  ASSERT_OK(RestoreState(resumed, state, "checkpoint"));
  EXPECT_THAT(resumed.epochs(), ElementsAre(1));
  EXPECT_THAT(resumed.top1(), ElementsAre(0.5));
  EXPECT_THAT(resumed.top5(), ElementsAre(0.75));
}

// Of a checkpoint that somebody else has made.
TEST_F(AccuracyRecorderTest, ListsOfUnequalLength_AreRefused) {
  for (const int64_t shortened : {0, 1, 2}) {
    AccuracyRecorder resumed;
    std::vector<NamedTensor> state = CollectState(recorder_).value();
    for (int64_t i = 0; i < 3; ++i) state[i].tensor = at::ones({i == shortened ? 1 : 2}, state[i].tensor.scalar_type());
    ASSERT_OK(RestoreState(resumed, state, "checkpoint"));
    EXPECT_THAT(resumed.OnStart(step_.context),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accuracy_recorder: the checkpoint has ")));
  }
  EXPECT_OK(recorder_.OnStart(step_.context));
}

TEST_F(AccuracyRecorderTest, MissingMeter_IsAnError) {
  step_.state.training = false;
  EXPECT_THAT(recorder_.OnPhaseEnd(step_.context),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("accuracy_list_meter")));
}

}  // namespace
}  // namespace ssl
