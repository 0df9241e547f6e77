// SPDX-License-Identifier: Apache-2.0
//
// ResNet, ResNeXt and RegNet trunks with weights from a recipe or from a file, in float64: features, batch statistics
// and gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/rand.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/models/layers.h"
#include "ssl/models/trunk.h"
#include "ssl/models/trunks/regnet.h"
#include "ssl/models/trunks/resnet.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

at::Tensor RecipeValue(const ModelTensor& entry, bool norm_bias, at::Generator& generator) {
  if (absl::EndsWith(entry.name, "num_batches_tracked")) return entry.value.clone();
  const at::Tensor u = at::rand(entry.value.sizes(), generator, at::kFloat);
  if (absl::EndsWith(entry.name, "running_mean")) return (u - 0.5) * 0.2;
  if (absl::EndsWith(entry.name, "running_var")) return u + 0.5;
  if (u.dim() >= 2) return (u * 2 - 1) * std::sqrt(3.0 / static_cast<double>(u[0].numel()));
  if (absl::EndsWith(entry.name, "weight")) return u * 0.5 + 0.25;
  return norm_bias ? u + 0.3 : (u - 0.5) * 0.2;
}

// Gives the trunk the recipe's weights and turns it to float64.
void ApplyRecipe(const Trunk& trunk, int64_t seed) {
  const at::NoGradGuard no_grad;
  at::Generator generator = MakeGenerator(seed);
  for (ModelTensor& entry : trunk.Tensors()) {
    at::Tensor value = RecipeValue(entry, entry.role == TensorRole::kNorm, generator);
    if (value.is_floating_point()) value = value.to(at::kDouble);
    entry.value.set_data(value);
  }
}

// "eval.res2.mean" of "eval.res2": mean, absmean, first, or the whole tensor for "".
void CheckSummary(absl::string_view summary, const at::Tensor& value, const golden::Output& expected) {
  if (summary == ".mean") {
    EXPECT_TRUE(golden::Matches(value.mean(), expected));
  } else if (summary == ".absmean") {
    EXPECT_TRUE(golden::Matches(value.abs().mean(), expected));
  } else if (summary == ".first") {
    const int64_t count = expected.tensor.numel();
    EXPECT_TRUE(golden::Matches(value.contiguous().flatten().narrow(0, 0, count), expected));
  } else if (summary == ".shape") {
    const std::vector<double> shape = golden::ListOf(expected);
    EXPECT_EQ(std::vector<double>(value.sizes().begin(), value.sizes().end()), shape);
  } else {
    EXPECT_EQ(summary, "");
    EXPECT_TRUE(golden::Matches(value.reshape(expected.tensor.sizes()), expected));
  }
}

// All values that outputs of the case may be about, by name: "eval.res2", "grad.conv1.weight", "bn.running_mean".
// first_bn: the first batch norm, "bn1".
std::map<std::string, at::Tensor> RunTrunk(const golden::Case& golden_case, Trunk& trunk, const std::string& first_bn,
                                           const at::Tensor& images) {
  std::vector<std::string> names;
  for (const ConfigNode& item : golden_case.Param("features").items()) names.push_back(item.text());
  if (names.empty()) return {};
  std::map<std::string, at::Tensor> values;
  for (const bool training : {false, true}) {
    trunk.SetTraining(training);
    const std::vector<at::Tensor> features = trunk.Features(images, names);
    for (size_t i = 0; i < features.size(); ++i) {
      values[absl::StrCat(training ? "train." : "eval.", names[i])] = features[i].detach().clone();
    }
    if (!training) continue;
    (features.back() * golden_case.steps[0].Input("loss_weight").to(at::kDouble)).sum().backward();
  }
  for (const ModelTensor& entry : trunk.Tensors()) {
    if (entry.value.grad().defined()) {
      values["grad._feature_blocks." + entry.name] = entry.value.grad();
      values["grad." + entry.name] = entry.value.grad();
    }
    absl::string_view statistic = entry.name;
    if (absl::ConsumePrefix(&statistic, first_bn + ".")) values[absl::StrCat("bn.", statistic)] = entry.value;
  }
  return values;
}

void CheckOutputs(const golden::Case& golden_case, const std::map<std::string, at::Tensor>& values) {
  for (const auto& [name, expected] : golden_case.steps[0].outputs) {
    SCOPED_TRACE(name);
    absl::string_view summary = "";
    std::string key = name;
    for (const absl::string_view suffix : {".absmean", ".mean", ".first", ".shape"}) {
      if (!absl::EndsWith(name, suffix)) continue;
      summary = suffix;
      key = std::string(absl::StripSuffix(name, suffix));
      break;
    }
    ASSERT_EQ(values.count(key), 1u) << "output is not known to this test: " << key;
    CheckSummary(summary, values.at(key), expected);
  }
}

absl::StatusOr<std::unique_ptr<Trunk>> MakeTrunk(const std::string& name, const ConfigNode& config) {
  if (name == "regnet") {
    RegNetOptions options;
    const absl::Status read = ReadOptions(config.Section("REGNET"), "REGNET", UnknownKeys::kError, &options);
    return read.ok() ? MakeRegNet(options, /*seed=*/0) : read;
  }
  ResNetOptions options;
  const absl::Status read = ReadOptions(config, "RESNETS", UnknownKeys::kIgnore, &options);
  return read.ok() ? MakeResNet(options, /*seed=*/0) : read;
}

// The batch norm whose statistics the outputs "bn." are.
std::string FirstNorm(const golden::Case& golden_case) {
  if (!golden_case.Has("first_bn")) return "bn1";
  return std::string(absl::StripPrefix(golden_case.Text("first_bn"), "_feature_blocks."));
}

void CheckTrunk(const golden::Case& golden_case) {
  const ConfigNode& config = golden_case.Param("config");
  const std::string name = golden_case.Text("trunk");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeTrunk(name, config));
  ApplyRecipe(*trunk, golden_case.Int("weight_seed"));
  at::Generator generator = MakeGenerator(golden_case.Int("input_seed"));
  at::Tensor images = (at::rand(golden_case.Ints("input_shape"), generator, at::kFloat) * 4 - 2).to(at::kDouble);
  const ConfigNode* input_type = config.Find("INPUT_TYPE");
  if (input_type != nullptr && input_type->text() == "bgr") images = at::flip(images, {1});
  CheckOutputs(golden_case, RunTrunk(golden_case, *trunk, FirstNorm(golden_case), images));
}

// The depth that has these blocks in its stages; 0 when none has.
int64_t DepthOf(const golden::Case& golden_case) {
  using Blocks = std::pair<std::string, std::vector<int64_t>>;
  static const auto* const depths =
      new std::map<Blocks, int64_t>{{{"basic", {2, 2, 2, 2}}, 18},        {{"basic", {3, 4, 6, 3}}, 34},
                                    {{"bottleneck", {3, 4, 6, 3}}, 50},   {{"bottleneck", {3, 4, 23, 3}}, 101},
                                    {{"bottleneck", {3, 8, 36, 3}}, 152}, {{"bottleneck", {3, 24, 36, 3}}, 200}};
  const auto found = depths->find({golden_case.Text("block"), golden_case.Ints("layers")});
  return found != depths->end() ? found->second : 0;
}

// As in our trunks, from stage to stage.
bool WidthsDouble(const std::vector<int64_t>& widths) {
  for (size_t i = 1; i < widths.size(); ++i) {
    if (widths[i] != 2 * widths[i - 1]) return false;
  }
  return widths.size() == 4;
}

std::string LimitOf(const golden::Case& golden_case) {
  if (golden_case.op == "trunk_recipe") {
    const std::string& trunk = golden_case.Text("trunk");
    return trunk == "resnet" || trunk == "regnet" ? "" : absl::StrCat("no trunk ", trunk);
  }
  if (DepthOf(golden_case) == 0) return "no depth has these blocks";
  return WidthsDouble(golden_case.Ints("widths")) ? "" : "widths that do not double";
}

// ResNets of a few channels, whose weights are inputs of the case.
void CheckSmallTrunk(const golden::Case& golden_case) {
  ResNetOptions options;
  options.depth = DepthOf(golden_case);
  options.width_multiplier = static_cast<double>(golden_case.Ints("widths")[0]) / 64.0;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeResNet(options, /*seed=*/0));
  for (ModelTensor& entry : trunk->Tensors()) {
    const at::NoGradGuard no_grad;
    if (absl::EndsWith(entry.name, "num_batches_tracked")) continue;
    const at::Tensor value = golden_case.Input(entry.name).to(at::kDouble);
    ASSERT_EQ(value.sizes(), entry.value.sizes()) << entry.name;
    entry.value.set_data(value);
  }
  const at::Tensor images = golden_case.steps[0].Input("input").to(at::kDouble);
  CheckOutputs(golden_case, RunTrunk(golden_case, *trunk, FirstNorm(golden_case), images));
}

TEST(ModelsForwardGolden, TrunksAreVissls) {
  golden::RunCategory("models_forward", {{"trunk_recipe", &CheckTrunk}, {"trunk_small", &CheckSmallTrunk}}, {},
                      &LimitOf);
}

}  // namespace
}  // namespace ssl
