// SPDX-License-Identifier: Apache-2.0
//
// ResNet trunks with weights from a recipe, in float64: features, batch statistics and gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/rand.h>

#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/models/layers.h"
#include "ssl/models/trunk.h"
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
std::map<std::string, at::Tensor> RunTrunk(const golden::Case& golden_case, Trunk& trunk, const at::Tensor& images) {
  std::vector<FeatureRequest> requests;
  for (const ConfigNode& item : golden_case.params.Find("features")->items()) requests.push_back({item.text(), 0});
  std::map<std::string, at::Tensor> values;
  for (const bool training : {false, true}) {
    trunk.SetTraining(training);
    const std::vector<at::Tensor> features = trunk.Features(images, requests);
    for (size_t i = 0; i < features.size(); ++i) {
      values[absl::StrCat(training ? "train." : "eval.", requests[i].name)] = features[i].detach().clone();
    }
    if (!training) continue;
    (features.back() * golden_case.steps[0].inputs.at("loss_weight").to(at::kDouble)).sum().backward();
  }
  for (const ModelTensor& entry : trunk.Tensors()) {
    if (entry.value.grad().defined()) values["grad._feature_blocks." + entry.name] = entry.value.grad();
    if (absl::StartsWith(entry.name, "bn1.")) values[absl::StrCat("bn.", entry.name.substr(4))] = entry.value;
  }
  return values;
}

void CheckTrunk(const golden::Case& golden_case) {
  if (golden_case.params.Find("trunk")->text() != "resnet") {
    std::cout << golden_case.name << ": no such trunk here: " << golden_case.params.Find("trunk")->text() << std::endl;
    return;
  }
  ResNetOptions options;
  const ConfigNode& config = *golden_case.params.Find("config");
  ASSERT_OK(ReadOptions(config, "config", UnknownKeys::kIgnore, &options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeResNet(options, /*seed=*/0));
  ApplyRecipe(*trunk, golden_case.Int("weight_seed"));
  at::Generator generator = MakeGenerator(golden_case.Int("input_seed"));
  at::Tensor images = (at::rand(golden_case.Ints("input_shape"), generator, at::kFloat) * 4 - 2).to(at::kDouble);
  const ConfigNode* input_type = config.Find("INPUT_TYPE");
  if (input_type != nullptr && input_type->text() == "bgr") images = at::flip(images, {1});

  const std::map<std::string, at::Tensor> values = RunTrunk(golden_case, *trunk, images);
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
    ASSERT_EQ(values.count(key), 1u) << "output is not known to this test";
    CheckSummary(summary, values.at(key), expected);
  }
}

TEST(ModelsForwardGolden, TrunksAreVissls) {
  golden::RunCategory("models_forward", {{"trunk_recipe", &CheckTrunk}}, {"trunk_small"});
}

}  // namespace
}  // namespace ssl
