// SPDX-License-Identifier: Apache-2.0
//
// What reaches a model when a collator joins the views of a sample (siamese_collator, patch_and_image_collator): the
// head siamese_concat_view puts side by side what belongs to one image. Whole sessions from a configuration.
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

constexpr char kModel[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
LOSS: {name: cross_entropy_multiple_output_single_target}
OPTIMIZER: {num_epochs: 1, param_schedulers: {lr: {name: constant, value: 0.001}}}
)";

// Calls `look` after each forward pass.
class LookHook : public Hook {
 public:
  explicit LookHook(std::function<void(const StepContext&)> look) : look_(std::move(look)) {}
  absl::string_view name() const override { return "look"; }
  HookStage stage() const override { return HookStage::kObserve; }
  absl::Status OnForward(StepContext& context) override {
    look_(context);
    return absl::OkStatus();
  }

 private:
  const std::function<void(const StepContext&)> look_;
};

absl::Status TrainAndLook(const std::string& config, std::function<void(const StepContext&)> look) {
  TrainingRun run;
  run.config = {kModel, config};
  run.prepare = [&look](Session& session, const Communicator&) {
    return session.AddHook(std::make_unique<LookHook>(look));
  };
  return Train(run).status();
}

// Equal views give equal features, so that each output is one feature, repeated.
TEST(JoinedViews, SiameseTowers_AreThoseOfOneImage) {
  constexpr char kSiamese[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: siamese_collator
    TRANSFORMS: [{name: ImgReplicatePil, num_times: 3}, {name: ToTensor}]
MODEL: {HEAD: {PARAMS: [[[mlp, {dims: [16, 4]}], [siamese_concat_view, {num_towers: 3}]]]}}
)";
  int steps = 0;
  ASSERT_OK(TrainAndLook(kSiamese, [&steps](const StepContext& context) {
    ++steps;
    const at::Tensor output = context.outputs.at(0).detach();
    ASSERT_EQ(output.sizes(), (std::vector<int64_t>{16, 12}));
    const at::Tensor towers = output.reshape({16, 3, 4});
    EXPECT_TRUE(at::allclose(towers.select(1, 0), towers.select(1, 1), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(towers.select(1, 0), towers.select(1, 2), 1e-4, 1e-5));
    EXPECT_FALSE(at::allclose(output[0], output[1], 1e-4, 1e-5)) << "images differ";
  }));
  EXPECT_EQ(steps, 5);
}

// As PIRL has it (VISSL's pirl_jigsaw_4node_resnet50), in small.
constexpr char kPatches[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: patch_and_image_collator
    INPUT_KEY_NAMES: [patches, images]
    TRANSFORMS:
      - {name: ImgPilToPatchesAndImage, num_patches: 4, crop_size_image: 16, crop_size_patches: 58}
      - {name: ToTensor}
MODEL:
  MULTI_INPUT_HEAD_MAPPING: [[patches, []], [images, []]]
  HEAD:
    PARAMS:
      - [[mlp, {dims: [16, 6]}], [siamese_concat_view, {num_towers: 4}], [mlp, {dims: [24, 4]}]]
      - [mlp, {dims: [16, 4]}]
)";

TEST(JoinedViews, PatchesAndImages_AreInputsByName) {
  int steps = 0;
  ASSERT_OK(TrainAndLook(kPatches, [&steps](const StepContext& context) {
    ++steps;
    const Batch& batch = *context.batch;
    EXPECT_TRUE(batch.views.empty());
    EXPECT_EQ(batch.named_inputs.at("images").sizes(), (std::vector<int64_t>{16, 3, 16, 16}));
    EXPECT_EQ(batch.named_inputs.at("patches").sizes(), (std::vector<int64_t>{64, 3, 8, 8}));
    ASSERT_EQ(context.outputs.size(), 2u);
    EXPECT_EQ(context.outputs[0].sizes(), (std::vector<int64_t>{16, 4}));
    EXPECT_EQ(context.outputs[1].sizes(), (std::vector<int64_t>{16, 4}));
  }));
  EXPECT_EQ(steps, 5);
}

}  // namespace
}  // namespace ssl
