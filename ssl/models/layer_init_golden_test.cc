// SPDX-License-Identifier: Apache-2.0
//
// Layers made from a seed have the values that torch gives after torch.manual_seed.
#include "gtest/gtest.h"
#include "ssl/models/layers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// torch.nn.Linear, then torch.nn.Conv2d without bias, of the sizes of the expected weights.
void CheckLayers(const golden::Case& golden_case) {
  const golden::Step& step = golden_case.steps[0];
  const at::Tensor& linear_weight = step.Expected("linear_weight").tensor;
  const at::Tensor& conv_weight = step.Expected("conv_weight").tensor;
  ASSERT_TRUE(linear_weight.defined() && linear_weight.dim() == 2);
  ASSERT_TRUE(conv_weight.defined() && conv_weight.dim() == 4);
  at::Generator generator = MakeGenerator(golden_case.Int("seed"));
  const LinearLayer linear = MakeLinear(linear_weight.size(1), linear_weight.size(0), /*use_bias=*/true, generator);
  const ConvLayer conv = MakeConv({conv_weight.size(1), conv_weight.size(0), conv_weight.size(2), 1, 1},
                                  ConvInit::kKaimingUniform, generator);
  EXPECT_TRUE(golden::Matches(linear.weight.detach(), step.Expected("linear_weight")));
  EXPECT_TRUE(golden::Matches(linear.bias.detach(), step.Expected("linear_bias")));
  EXPECT_TRUE(golden::Matches(conv.weight.detach(), step.Expected("conv_weight")));
}

TEST(RngGolden, LayersAreTorchs) {
  golden::RunCategory("rng", {{"layer_init", &CheckLayers}}, {"rng", "moco_queue_init", "swav_queue_init"});
}

}  // namespace
}  // namespace ssl
