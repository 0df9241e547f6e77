// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/measured_names.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/meter.h"
#include "ssl/core/value_names.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/meters/register_meters.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMeters[] =
    "METERS: {names: [accuracy_list_meter, mean_ap_list_meter], accuracy_list_meter: {num_meters: 2, topk_values: "
    "[1, 5], meter_names: [res4, res5]}}\n";

class MeasuredNamesTest : public ::testing::Test {
 protected:
  MeasuredNamesTest() { EXPECT_OK(RegisterMeters(&registries_)); }

  absl::Status Check(const std::string& metric, const std::string& config) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> tree = ParseYaml(config, "test.yaml", &warnings);
    EXPECT_OK(tree);
    return CheckPhaseMetric(metric, "test.yaml:1: KEY", {*tree, registries_, *communicator_});
  }

  // Accepted without a warning.
  bool IsKnown(const std::string& metric, const std::string& config) {
    const CapturedLog log;
    return Check(metric, config).ok() && log.warnings.empty();
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(MeasuredNamesTest, TheLossAndTheMeters_AreMeasured) {
  for (const char* metric : {"Testing/loss_mean", "Training/loss_mean", "Testing/accuracy_list_meter_top_5_Output_res4",
                             "Training/accuracy_list_meter_top_1_Output_res5"}) {
    EXPECT_OK(Check(metric, kMeters)) << metric;
  }
  EXPECT_OK(Check("Testing/loss_mean", "{}"));
  EXPECT_TRUE(IsKnown("Testing/mean_ap_list_meter_mAP_Output_0", kMeters));
}

TEST_F(MeasuredNamesTest, MistypedNames_AreRefusedWithTheNearest) {
  const auto refused = [](const auto& what) { return StatusIs(absl::StatusCode::kInvalidArgument, what); };
  EXPECT_THAT(Check("Testing/los_mean", kMeters),
              refused(AllOf(HasSubstr("test.yaml:1: KEY is 'Testing/los_mean', which this run does not measure"),
                            HasSubstr("did you mean 'Testing/loss_mean'?"))));
  EXPECT_THAT(Check("Testing/accuracy_list_meter_top_2_Output_res4", kMeters),
              refused(HasSubstr("did you mean 'Testing/accuracy_list_meter_top_1_Output_res4'?")));
  EXPECT_THAT(Check("Testing/mean_ap_list_meter_maP_Output_0", kMeters),
              refused(HasSubstr("did you mean 'Testing/mean_ap_list_meter_mAP_Output_0'?")));
  EXPECT_THAT(Check("Testing/Loss_maen", kMeters), refused(HasSubstr("did you mean 'Testing/loss_mean'?")));
  EXPECT_THAT(Check("loss", kMeters),
              refused(HasSubstr("expected a name that starts with Training/, Testing/, Evaluation/ or Host/")));
}

// Such a run used to end with its first epoch, or never to find what it looked for.
TEST_F(MeasuredNamesTest, NamesThatNothingMeasures_AreRefusedWithThoseThatAre) {
  const auto refused = [](const auto& what) { return StatusIs(absl::StatusCode::kInvalidArgument, what); };
  EXPECT_THAT(Check("Testing/top_1", kMeters),
              refused(AllOf(HasSubstr("test.yaml:1: KEY is 'Testing/top_1', which this run does not measure; measured"),
                            HasSubstr("are Testing/loss_mean, Testing/accuracy_list_meter_top_1_Output_res4, "),
                            HasSubstr("config.METERS.names"), HasSubstr("start with Host/"))));
  EXPECT_THAT(Check("Training/accuracy_list_meter_top_1_Output_res5",
                    "METERS: {names: [accuracy_list_meter], enable_training_meter: False}"),
              refused(AllOf(HasSubstr("easured are Training/loss_mean; "), HasSubstr("enable_training_meter"))));
  const std::string eval = "HOOKS: {EVAL: {ONLINE_EVALUATION: True}}";
  for (const char* metric : {"Evaluation/svm_top_1", "Evaluation/knn_auc", "Evaluation/loss_mean"}) {
    EXPECT_THAT(Check(metric, eval), refused(HasSubstr("easured are Evaluation/knn_top_1, "))) << metric;
  }
  EXPECT_THAT(Check("Evaluation/loss_mean", "{}"), refused(AllOf(HasSubstr("are none"), HasSubstr("LOSS say"))));
}

// "Training/Loss" stands in metrics.jsonl: it is the loss of a step.
TEST_F(MeasuredNamesTest, NamesThatBeginRightOrDifferInLetterCase_AreRefusedWithTheOneThatIsMeant) {
  for (const char* metric : {"Training/Loss", "Training/Loss_Mean", "Training/LOSS_MEAN", "Training/loss"}) {
    EXPECT_THAT(Check(metric, kMeters), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 AllOf(HasSubstr(metric), HasSubstr("at the end of a phase (names of"),
                                                       HasSubstr("mean 'Training/loss_mean'?"))));
  }
}

TEST_F(MeasuredNamesTest, ManyNames_AreCounted) {
  EXPECT_THAT(Check("Testing/x",
                    "METERS: {names: [accuracy_list_meter], accuracy_list_meter: {num_meters: 9, "
                    "topk_values: [1, 5]}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(" and 7 more; config.METERS.names")));
}

TEST_F(MeasuredNamesTest, WhatHooksOfTheHostMeasure_IsNotKnown) {
  EXPECT_TRUE(IsKnown("Host/words_per_second", kMeters));
  EXPECT_TRUE(IsKnown("Host/words_per_second", "TEST_ONLY: True"));
}

TEST_F(MeasuredNamesTest, NamesOfSeveralValues_AreRefused) {
  EXPECT_THAT(Check("Testing/accuracy_list_meter_top_1_Output_0",
                    "METERS: {names: [accuracy_list_meter], accuracy_list_meter: {topk_values: [1, 1]}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several values in each phase")));
  EXPECT_THAT(Check("Testing/mean_ap_list_meter_AP_Output_0", kMeters),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several values in each phase")));
  const std::string one_class = "METERS: {names: [mean_ap_list_meter], mean_ap_list_meter: {num_classes: 1}}";
  EXPECT_TRUE(IsKnown("Testing/mean_ap_list_meter_AP_Output_0", one_class));
}

TEST_F(MeasuredNamesTest, AveragedModels_HaveMetersWhereTheyAreTurnedOn) {
  const std::string metric = "Testing/accuracy_list_meter_ema_top_1_Output_res4";
  EXPECT_FALSE(IsKnown(metric, kMeters));
  EXPECT_FALSE(IsKnown(metric, std::string(kMeters) + "HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True}}"));
  EXPECT_TRUE(IsKnown(metric, std::string(kMeters) + "HOOKS: {EMA_MODEL: {ENABLE_EMA_METERS: True}}"));
  EXPECT_TRUE(IsKnown(metric, std::string(kMeters) + "hooks: [{type: ema, kwargs: {ENABLE_EMA_METERS: True}}]"));
  const std::string slow = "hooks: [{type: ema, name: slow, kwargs: {ENABLE_EMA_METERS: True}}]";
  EXPECT_TRUE(IsKnown("Testing/accuracy_list_meter_slow_top_1_Output_res4", kMeters + slow));
  EXPECT_FALSE(IsKnown(metric, kMeters + slow));
}

TEST_F(MeasuredNamesTest, Evaluations_MeasureWhatTheHookIsToldTo) {
  const std::string section = "HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False, LOSS: True}}";
  EXPECT_OK(Check("Evaluation/linear_top_5", section));
  EXPECT_OK(Check("Evaluation/loss_mean", section));
  EXPECT_THAT(Check("Evaluation/knn_top_1", section),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.HOOKS.EVAL.ONLINE_EVALUATION, KNN ")));
  EXPECT_THAT(Check("Evaluation/linear_top1", section),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'Evaluation/linear_top_1'?")));
  EXPECT_THAT(Check("Evaluation/knn_top_1", "{}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("ONLINE_EVALUATION"), Not(HasSubstr("did you mean")))));
  const std::string list = "hooks: [{type: eval}, {type: eval, name: early, kwargs: {KNN: False}}]";
  EXPECT_OK(Check("Evaluation/knn_top_1", list));
  EXPECT_OK(Check("Evaluation/early_linear_top_1", list));
  EXPECT_THAT(Check("Evaluation/words_per_second", list),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are")));
}

// A meter of the host's: of some classes only data can tell.
class LateMeter : public Meter {
 public:
  absl::string_view name() const override { return "late"; }
  absl::Status Update(const std::vector<at::Tensor>&, const at::Tensor&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<MeterValue>> Values(Communicator&) override {
    return std::vector<MeterValue>{{"mean", "", 0.0}};
  }
  void Reset() override {}
};

// Names all of its values.
class PunctualMeter : public LateMeter, public NamesValues {
 public:
  std::vector<ValueName> ValueNames() const override { return {{"words", ""}}; }
};

template <class AnyMeter>
absl::StatusOr<std::unique_ptr<Meter>> MakeMeter(const ConfigNode&, const BuildContext&) {
  return std::make_unique<AnyMeter>();
}

TEST_F(MeasuredNamesTest, MetersThatDoNotNameTheirValues_MayMeasureAnything) {
  ASSERT_OK(registries_.meters.Register("late", &MakeMeter<LateMeter>));
  EXPECT_TRUE(IsKnown("Testing/late_mean", "METERS: {names: [late]}"));
  EXPECT_TRUE(IsKnown("Testing/late_class_3", "METERS: {names: [late]}")) << "only after a first batch";
  EXPECT_FALSE(IsKnown("Testing/loud_words", "METERS: {names: [late]}"));
}

TEST_F(MeasuredNamesTest, MetersThatNameTheirValues_MeasureNoOthers) {
  ASSERT_OK(registries_.meters.Register("punctual", &MakeMeter<PunctualMeter>));
  EXPECT_TRUE(IsKnown("Testing/punctual_words", "METERS: {names: [punctual]}"));
  EXPECT_FALSE(IsKnown("Testing/punctual_word", "METERS: {names: [punctual]}"));
}

}  // namespace
}  // namespace ssl
