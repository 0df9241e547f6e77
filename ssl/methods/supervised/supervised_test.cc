// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/supervised.h"

#include <ATen/ops/tensor.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/method.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

constexpr char kSeveralOutputs[] = "cross_entropy_multiple_output_single_target";

// Returns the views.
class IdentityModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {}; }
  void SetTraining(bool) override {}
};

class SupervisedTest : public ::testing::Test {
 protected:
  SupervisedTest() {
    EXPECT_OK(RegisterSupervised(&registries_));
    batch_.views = {at::tensor(std::vector<float>{1.0F, 0.0F, 0.0F, 1.0F}).view({2, 2})};
    batch_.targets = at::tensor(std::vector<int64_t>{0, 0}, at::kLong);
    context_.batch = &batch_;
  }

  absl::StatusOr<std::unique_ptr<Method>> Make(const std::string& name, const std::string& yaml = "{}") {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> params = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(params);
    return registries_.methods.Make(name, *params, {config_, registries_, *communicator_});
  }

  Registries registries_;
  const ConfigNode config_ = ConfigNode::Map();
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  Batch batch_;
  TrainState state_;
  IdentityModel model_;
  MetricStore metrics_;
  StopToken stop_;
  StepContext context_{state_, model_, /*optimizer=*/nullptr, *communicator_, metrics_, stop_, /*checkpoints=*/nullptr};
};

// Cross entropy of the scores (1, 0) for their first and for their second class.
const double kLow = std::log(1.0 + std::exp(-1.0));
const double kHigh = std::log(1.0 + std::exp(1.0));

TEST_F(SupervisedTest, SomeLossesTakeLabelsAsClasses) {
  std::vector<std::string> names;
  for (const std::string& name : registries_.methods.Names()) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Method> method, Make(name));
    EXPECT_TRUE(method->needs_labels()) << name;
    if (method->labels_are_classes()) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("CrossEntropyLoss", "MultiMarginLoss", "NLLLoss", kSeveralOutputs));
}

TEST_F(SupervisedTest, Registered_AreTheseLossesWithTheirSections) {
  EXPECT_OK(RegisterSupervised(&registries_));
  EXPECT_THAT(registries_.methods.Names(),
              ElementsAre("BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
                          "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "SmoothL1Loss", "SoftMarginLoss",
                          "bce_logits_multiple_output_single_target", kSeveralOutputs));
  const ConfigNode defaults = registries_.options.Defaults();
  for (const std::string& name : registries_.methods.Names()) {
    EXPECT_TRUE(defaults.Section("LOSS." + name).Find("reduction") != nullptr) << name;
  }
  EXPECT_EQ(defaults.FindPath("LOSS.CrossEntropyLoss.ignore_index")->text(), "-1");
  EXPECT_EQ(defaults.FindPath("LOSS.NLLLoss.ignore_index")->text(), "-100");
  EXPECT_EQ(defaults.FindPath("LOSS.bce_logits_multiple_output_single_target.reduction")->text(), "none");
  EXPECT_TRUE(registries_.meters.Has("accuracy_list_meter"));
}

TEST_F(SupervisedTest, OneOutput_IsTheObjectiveAndNoMetric) {
  ASSERT_OK_AND_ASSIGN(const auto method, Make("CrossEntropyLoss"));

  ASSERT_OK(method->Forward(context_));
  ASSERT_OK(method->ComputeLoss(context_));

  EXPECT_NEAR(context_.loss.item<double>(), (kLow + kHigh) / 2.0, 1e-6);
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_TRUE(report.values.empty());
}

TEST_F(SupervisedTest, SeveralOutputs_AddUpAndAreMetrics) {
  ASSERT_OK_AND_ASSIGN(const auto method, Make(kSeveralOutputs));
  batch_.views.push_back(batch_.views[0].flip(1));
  batch_.targets = at::tensor(std::vector<int64_t>{0, -1}, at::kLong);
  batch_.views[0].set_requires_grad(true);

  ASSERT_OK(method->Forward(context_));
  ASSERT_OK(method->ComputeLoss(context_));

  EXPECT_NEAR(context_.loss.item<double>(), kLow + kHigh, 1e-6);
  EXPECT_TRUE(context_.loss.requires_grad());
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  ASSERT_THAT(report.values, ElementsAre(Key("Loss/output_0"), Key("Loss/output_1")));
  EXPECT_NEAR(report.values.at("Loss/output_0"), kLow, 1e-6);
  EXPECT_NEAR(report.values.at("Loss/output_1"), kHigh, 1e-6);
}

TEST_F(SupervisedTest, TestPhases_AddNoMetrics) {
  ASSERT_OK_AND_ASSIGN(const auto method, Make(kSeveralOutputs));
  batch_.views.push_back(batch_.views[0]);
  state_.training = false;

  ASSERT_OK(method->Forward(context_));
  ASSERT_OK(method->ComputeLoss(context_));

  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_TRUE(report.values.empty());
}

TEST_F(SupervisedTest, BatchWithoutLabels_NamesTheKeysOfItsSplit) {
  ASSERT_OK_AND_ASSIGN(const auto method, Make("CrossEntropyLoss"));
  batch_.targets = at::Tensor();
  ASSERT_OK(method->Forward(context_));

  EXPECT_THAT(method->ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("LOSS.name is CrossEntropyLoss, which needs labels"),
                             HasSubstr("config.DATA.TRAIN.LABEL_SOURCES"), HasSubstr("config.DATA.TRAIN.LABEL_TYPE"))));
  state_.training = false;
  EXPECT_THAT(method->ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TEST.LABEL_SOURCES")));
}

TEST_F(SupervisedTest, LabelsThatDoNotFit_AreNamedWithTheLoss) {
  ASSERT_OK_AND_ASSIGN(const auto method, Make("CrossEntropyLoss"));
  batch_.targets = at::tensor(std::vector<int64_t>{0, 7}, at::kLong);
  ASSERT_OK(method->Forward(context_));

  EXPECT_THAT(method->ComputeLoss(context_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("CrossEntropyLoss: sample 1 of the batch has the label 7")));
}

TEST_F(SupervisedTest, WrongOptions_AreNamedWithTheirPlace) {
  EXPECT_THAT(Make("CrossEntropyLoss", "label_smoothing: 2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:1"), HasSubstr("config.LOSS.CrossEntropyLoss.label_smoothing"))));
  EXPECT_THAT(Make(kSeveralOutputs, "temperature: 0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("temperature")));
  EXPECT_THAT(Make("MSELoss", "reduction: none"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one of 'mean', 'sum'")));
}

}  // namespace
}  // namespace ssl
