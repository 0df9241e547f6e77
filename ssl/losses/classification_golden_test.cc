// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy and binary cross entropy, summed over outputs, against VISSL: loss and gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/losses/bce_logits.h"
#include "ssl/losses/cross_entropy.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using Loss = std::function<absl::StatusOr<at::Tensor>(const at::Tensor& output, const at::Tensor& targets)>;

void CheckStep(const golden::Case& golden_case, const golden::Step& step, const Loss& loss_of) {
  ASSERT_GT(golden_case.Int("num_outputs", 1), 0);
  std::vector<at::Tensor> outputs;
  at::Tensor sum;
  for (int64_t i = 0; i < golden_case.Int("num_outputs", 1); ++i) {
    outputs.push_back(step.Input(absl::StrCat("output", i)).clone().set_requires_grad(true));
    ASSERT_OK_AND_ASSIGN(const at::Tensor loss, loss_of(outputs.back(), step.Input("target")));
    sum = sum.defined() ? sum + loss : loss;
  }
  EXPECT_TRUE(golden::Matches(sum.item<double>(), step.Expected("loss")));

  sum.backward();

  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(golden::Matches(outputs[i].grad(), step.Expected(absl::StrCat("grad_output", i)))) << i;
  }
}

void Check(const golden::Case& golden_case, const Loss& loss_of) {
  for (const golden::Step& step : golden_case.steps) CheckStep(golden_case, step, loss_of);
}

void CheckCrossEntropy(const golden::Case& golden_case) {
  CrossEntropyOptions options;
  options.temperature = golden_case.Double("temperature", options.temperature);
  options.normalize_output = golden_case.Flag("normalize_output");
  options.ignore_index = golden_case.Int("ignore_index", options.ignore_index);
  options.label_smoothing = golden_case.Double("label_smoothing");
  Check(golden_case,
        [&](const at::Tensor& output, const at::Tensor& targets) { return CrossEntropy(output, targets, options); });
}

void CheckBce(const golden::Case& golden_case) {
  const bool normalize_output = golden_case.Flag("normalize_output");
  Check(golden_case, [&](const at::Tensor& output, const at::Tensor& targets) {
    return BceLogits(output, targets, normalize_output);
  });
}

TEST(ClassificationGolden, LossesAndGradientsMatch) {
  golden::RunCategory("losses",
                      {{"bce_logits_multiple_output_single_target", &CheckBce},
                       {"cross_entropy_multiple_output_single_target", &CheckCrossEntropy}},
                      /*out_of_scope=*/
                      {"barlow_twins_loss", "deepclusterv2_loss", "dino_distillation_loss", "dino_loss",
                       "distillation_loss", "ibot_distillation_loss", "ibot_loss", "msn_distillation_loss", "msn_loss",
                       "multicrop_simclr_info_nce_loss", "nce_loss_with_memory", "simclr_info_nce_loss",
                       "swav_distillation_loss", "swav_momentum_loss", "teacher_momentum_schedule"});
}

}  // namespace
}  // namespace ssl
