// SPDX-License-Identifier: Apache-2.0
//
// Layers made from a seed have the values that torch gives after torch.manual_seed.
#include "gtest/gtest.h"
#include "ssl/models/layers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// torch.nn.Linear(6, 4), then torch.nn.Conv2d(3, 4, 3, bias=False).
void CheckLayers(const golden::Case& golden_case) {
  at::Generator generator = MakeGenerator(golden_case.Int("seed"));
  const LinearLayer linear = MakeLinear(6, 4, /*use_bias=*/true, generator);
  const ConvLayer conv = MakeConv({3, 4, 3, 1, 1}, ConvInit::kKaimingUniform, generator);
  const auto& outputs = golden_case.steps[0].outputs;
  EXPECT_TRUE(golden::Matches(linear.weight.detach(), outputs.at("linear_weight")));
  EXPECT_TRUE(golden::Matches(linear.bias.detach(), outputs.at("linear_bias")));
  EXPECT_TRUE(golden::Matches(conv.weight.detach(), outputs.at("conv_weight")));
}

TEST(RngGolden, LayersAreTorchs) {
  golden::RunCategory("rng", {{"layer_init", &CheckLayers}}, {"rng", "moco_queue_init", "swav_queue_init"});
}

}  // namespace
}  // namespace ssl
