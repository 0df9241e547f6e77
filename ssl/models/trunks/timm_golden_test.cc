// SPDX-License-Identifier: Apache-2.0
//
// Transformers with the weights of timm's, in float64: features by VISSL's names and gradients
// (tests/golden/timm_golden.py).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/models/trunk.h"
#include "ssl/models/trunks/vision_transformer.h"
#include "ssl/models/trunks/xcit.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

constexpr char kFolder[] = "tests/golden/timm";

// Every tensor of the trunk becomes the case's of that name, and the case has no others.
void LoadWeights(const golden::Case& golden_case, const Trunk& trunk) {
  const ModelTensors tensors = trunk.Tensors();
  size_t loaded = 0;
  for (const ModelTensor& entry : tensors) {
    if (absl::EndsWith(entry.name, "num_batches_tracked")) continue;
    ++loaded;
    const at::Tensor value = golden_case.Input(entry.name);
    ASSERT_EQ(value.sizes(), entry.value.sizes()) << entry.name;
    entry.value.set_data(value.to(at::kDouble));
  }
  EXPECT_EQ(loaded, golden_case.inputs.size());
}

// Of a network in training: where its running statistics have got.
void AddMovedStatistics(const Trunk& trunk, std::map<std::string, at::Tensor>* values) {
  for (const ModelTensor& entry : trunk.Tensors()) {
    if (entry.role == TensorRole::kBuffer) (*values)[absl::StrCat("moved.", entry.name)] = entry.value.clone();
  }
}

void CheckStep(const golden::Step& step, Trunk& trunk) {
  const at::Tensor images = step.Input("images").to(at::kDouble);
  for (const ModelTensor& entry : trunk.Tensors()) at::Tensor(entry.value).mutable_grad() = at::Tensor();
  const at::Tensor output = trunk.Forward(images);
  (output.pow(2) + output.pow(3)).sum().backward();
  std::map<std::string, at::Tensor> values = {{"output", output.detach()}};
  for (const ModelTensor& entry : trunk.Tensors()) {
    if (entry.value.grad().defined()) values[absl::StrCat("grad.", entry.name)] = entry.value.grad();
  }
  AddMovedStatistics(trunk, &values);
  for (const auto& [name, expected] : step.outputs) {
    SCOPED_TRACE(name);
    const bool is_feature = values.count(name) == 0;
    const at::Tensor value = is_feature ? trunk.Features(images, {name})[0].detach() : values.at(name);
    EXPECT_TRUE(golden::Matches(value, expected));
    const double error = (value - expected.tensor).abs().max().item<double>();
    EXPECT_LE(error, 1e-11 * (1.0 + expected.absmax)) << "in float64";
  }
}

void CheckTrunk(const golden::Case& golden_case, Trunk& trunk) {
  LoadWeights(golden_case, trunk);
  trunk.SetTraining(golden_case.Flag("training"));
  for (const golden::Step& step : golden_case.steps) CheckStep(step, trunk);
}

void CheckVisionTransformer(const golden::Case& golden_case) {
  VisionTransformerOptions options;
  ASSERT_OK(ReadOptions(golden_case.Param("config"), "config", UnknownKeys::kError, &options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeVisionTransformer(options, /*seed=*/0));
  CheckTrunk(golden_case, *trunk);
}

void CheckXcit(const golden::Case& golden_case) {
  XcitOptions options;
  ASSERT_OK(ReadOptions(golden_case.Param("config"), "config", UnknownKeys::kError, &options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk, MakeXcit(options, /*seed=*/0));
  CheckTrunk(golden_case, *trunk);
}

TEST(TimmGolden, Xcits) {
  ASSERT_OK_AND_ASSIGN(const std::vector<golden::Case> cases, golden::ReadCategory("xcit", kFolder));
  golden::RunCases("xcit", cases, {{"xcit", &CheckXcit}});
}

TEST(TimmGolden, VisionTransformers) {
  ASSERT_OK_AND_ASSIGN(const std::vector<golden::Case> cases, golden::ReadCategory("vision_transformer", kFolder));
  golden::RunCases("vision_transformer", cases, {{"vision_transformer", &CheckVisionTransformer}});
}

}  // namespace
}  // namespace ssl
