// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/model_complexity_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The model that a configuration of "MODEL" makes.
class ModelComplexityTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterModels(&registries_)); }

  std::unique_ptr<Model> Build(const std::string& text) {
    std::vector<std::string> warnings;
    const ConfigNode config = ParseYaml(absl::StrCat("MODEL: ", text), "model.yaml", &warnings).value();
    const BuildContext context{config, registries_, *communicator_, /*seed=*/0, ""};
    return registries_.models.Make("multi_input_output_model", *config.Find("MODEL"), context).value();
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(ModelComplexityTest, ResNet50_HasTheKnownSize) {
  const std::unique_ptr<Model> model =
      Build("{TRUNK: {NAME: resnet, RESNETS: {DEPTH: 50}}, HEAD: {PARAMS: [[mlp, {dims: [2048, 1000]}]]}}");

  ASSERT_OK_AND_ASSIGN(const ModelComplexity complexity, MeasureComplexity(*model, {3, 224, 224}));

  EXPECT_EQ(complexity.parameters, 25557032);
  EXPECT_EQ(complexity.trainable_parameters, 25557032);
  EXPECT_EQ(complexity.operations.multiply_adds, 4089184256);  // the 4.089 G that torchvision lists
  EXPECT_EQ(complexity.operations.activations, 11114984);
}

TEST_F(ModelComplexityTest, FrozenTrunk_IsCountedAndNotTrained) {
  const std::unique_ptr<Model> model = Build(
      "{TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}}, "
      "HEAD: {PARAMS: [[mlp, {dims: [64, 5]}]]}, "
      "FEATURE_EVAL_SETTINGS: {EVAL_MODE_ON: True, FREEZE_TRUNK_ONLY: True}}");

  ASSERT_OK_AND_ASSIGN(const ModelComplexity complexity, MeasureComplexity(*model, {3, 32, 32}));

  EXPECT_EQ(complexity.trainable_parameters, 64 * 5 + 5);
  EXPECT_GT(complexity.parameters, 100 * complexity.trainable_parameters);
}

TEST_F(ModelComplexityTest, Measuring_ChangesNothing) {
  const std::unique_ptr<Model> model =
      Build("{TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}}, HEAD: {PARAMS: []}}");
  ASSERT_OK_AND_ASSIGN(const uint32_t before, HashState(*model));

  ASSERT_OK(MeasureComplexity(*model, {3, 64, 64}));

  ASSERT_OK_AND_ASSIGN(const uint32_t after, HashState(*model));
  EXPECT_EQ(before, after);
}

// Multiplies its picture, seen as a matrix, by another one; notes its modes.
class OneProduct : public FakeModel {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    TORCH_CHECK_VALUE(views[0].size(1) == 1, "a picture has ", views[0].size(1), " channels, expected 1");
    return {at::mm(views[0].view({views[0].size(2), views[0].size(3)}), at::zeros({views[0].size(3), 7}))};
  }
  void SetTraining(bool training) override { modes.push_back(training); }

  std::vector<bool> modes;
};

class ModelComplexityHookTest : public ::testing::Test {
 protected:
  // The context of a run with the model above.
  StepContext Context(Communicator& communicator) {
    return {step_.state, model_, nullptr, communicator, step_.metrics, step_.stop, nullptr};
  }

  FakeStep step_;
  OneProduct model_;
};

TEST_F(ModelComplexityHookTest, Start_WritesOneLine) {
  model_.parameters = {{"weight", at::zeros({1500})}};
  StepContext context = Context(step_.context.communicator);
  CapturedLog log;

  ASSERT_OK(ModelComplexityHook({1, 10, 20}).OnStart(context));

  EXPECT_THAT(log.lines, ElementsAre("model: 1,500 parameters, 1,500 of them trained; for a picture [1, 10, 20]: 1,400 "
                                     "multiply-adds and 70 activations of convolutions and matrix products"));
  EXPECT_THAT(model_.modes, ElementsAre(false, context.state.training));
}

TEST_F(ModelComplexityHookTest, ModelThatRefusesThePicture_IsAnError) {
  StepContext context = Context(step_.context.communicator);

  EXPECT_THAT(ModelComplexityHook({3, 10, 20}).OnStart(context),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("picture [3, 10, 20] (HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE): "),
                             HasSubstr("a picture has 3 channels, expected 1"))));
}

}  // namespace
}  // namespace ssl
