// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/regnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> WidthsOf(const std::string& name) {
  RegNetOptions options;
  options.name = name;
  const absl::StatusOr<RegNetOptions> resolved = ResolveRegNetPreset(options);
  EXPECT_OK(resolved);
  const absl::StatusOr<std::vector<RegNetStage>> stages = RegNetStages(*resolved);
  EXPECT_OK(stages);
  std::vector<int64_t> widths;
  for (const RegNetStage& stage : *stages) {
    widths.push_back(stage.width);
    EXPECT_EQ(stage.bottleneck_width % stage.groups, 0) << name;
  }
  return widths;
}

// Two stages of tiny blocks.
RegNetOptions Tiny() {
  RegNetOptions options;
  options.name = "anynet";
  options.depths = {1, 2};
  options.widths = {8, 16};
  options.group_widths = {4, 8};
  options.bottleneck_multipliers = {1.0, 1.0};
  options.strides = {2, 2};
  options.stem_width = 8;
  return options;
}

at::Tensor Images(int64_t size) {
  return at::sin(at::arange(2 * 3 * size * size, at::kFloat) * 0.11)
      .view({2, 3, size, size})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(RegNetStages, Presets_HaveThePublishedWidths) {
  EXPECT_EQ(WidthsOf("regnet_x_400mf"), (std::vector<int64_t>{32, 64, 160, 384}));
  EXPECT_EQ(WidthsOf("regnet_x_8gf"), (std::vector<int64_t>{80, 240, 720, 1920}));
  EXPECT_EQ(WidthsOf("regnet_x_32gf"), (std::vector<int64_t>{336, 672, 1344, 2520}));
  EXPECT_EQ(WidthsOf("regnet_y_400mf"), (std::vector<int64_t>{48, 104, 208, 440}));
  EXPECT_EQ(WidthsOf("regnet_y_16gf"), (std::vector<int64_t>{224, 448, 1232, 3024}));
  EXPECT_EQ(WidthsOf("regnet_y_32gf"), (std::vector<int64_t>{232, 696, 1392, 3712}));
  EXPECT_EQ(WidthsOf("regnet_y_128gf"), (std::vector<int64_t>{528, 1056, 2904, 7392}));
}

TEST(RegNetStages, Numbers_GiveTheirPresetsStages) {
  RegNetOptions options;
  options.depth = 16;
  options.w_0 = 48;
  options.w_a = 27.89;
  options.w_m = 2.09;
  options.group_width = 8;
  ASSERT_OK_AND_ASSIGN(const std::vector<RegNetStage> stages, RegNetStages(options));
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[3].blocks, 6);
  EXPECT_EQ(stages[3].width, 440);
  EXPECT_EQ(stages[3].groups, 55);
}

TEST(RegNetStages, Mistakes_AreNamed) {
  RegNetOptions options;
  EXPECT_THAT(RegNetStages(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("REGNET has no name")));
  options.name = "regnet_y_16g";
  EXPECT_THAT(ResolveRegNetPreset(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'regnet_y_16gf'")));
  options = Tiny();
  options.strides = {2};
  EXPECT_THAT(RegNetStages(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("REGNET.strides has 1 entries and depths 2")));
  options = Tiny();
  options.group_widths = {4, 12};
  EXPECT_THAT(RegNetStages(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("REGNET.group_widths[1] is 12, which does not divide")));
}

TEST(RegNet, Features_HaveTheStagesShapes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeRegNet(Tiny(), 0));
  EXPECT_EQ(trunk->feature_names(), (std::vector<std::string>{"conv1", "res2", "res3", "avgpool", "flatten"}));
  const std::vector<at::Tensor> features = trunk->Features(Images(32), {"conv1", "res2", "res3", "avgpool"});
  EXPECT_EQ(features[0].sizes(), at::IntArrayRef({2, 8, 16, 16}));
  EXPECT_EQ(features[1].sizes(), at::IntArrayRef({2, 8, 8, 8}));
  EXPECT_EQ(features[2].sizes(), at::IntArrayRef({2, 16, 4, 4}));
  EXPECT_EQ(features[3].sizes(), at::IntArrayRef({2, 16}));
}

// The first block in evaluation mode with fresh statistics, in which batch norm divides by sqrt(1 + eps) only.
TEST(RegNet, Block_IsTheFormula) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeRegNet(Tiny(), 0));
  trunk->SetTraining(false);
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> weights;
  for (const ModelTensor& entry : trunk->Tensors()) weights[entry.name] = entry.value;
  const auto weight = [&](const std::string& name) { return weights.at("res2.block1-0." + name); };
  const auto norm = [](const at::Tensor& map) { return map / std::sqrt(1.0 + 1e-5); };
  const std::vector<at::Tensor> features = trunk->Features(Images(32), {"conv1", "res2"});
  const at::Tensor& x = features[0];
  const at::Tensor a = norm(at::conv2d(x, weight("f.a.0.weight"))).relu();
  const at::Tensor b = norm(at::conv2d(a, weight("f.b.0.weight"), {}, {2, 2}, {1, 1}, {1, 1}, 2)).relu();
  const at::Tensor squeezed =
      at::conv2d(b.mean({2, 3}, true), weight("f.se.excitation.0.weight"), weight("f.se.excitation.0.bias")).relu();
  const at::Tensor scale =
      at::conv2d(squeezed, weight("f.se.excitation.2.weight"), weight("f.se.excitation.2.bias")).sigmoid();
  const at::Tensor c = norm(at::conv2d(b * scale, weight("f.c.weight")));
  const at::Tensor shortcut = norm(at::conv2d(x, weight("proj.weight"), {}, {2, 2}));
  EXPECT_TRUE(at::allclose(features[1], (c + shortcut).relu(), 1e-4, 1e-5));
}

}  // namespace
}  // namespace ssl
