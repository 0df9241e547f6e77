// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/dino_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/autocast.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Row = std::vector<double>;

at::Tensor Features(int64_t rows, int64_t width) {
  return at::sin(at::arange(rows * width, at::kFloat) * 0.7).view({rows, width});
}

DinoHeadOptions Options() {
  DinoHeadOptions options;
  options.in_dim = 6;
  options.num_clusters = {5};
  options.hidden_dim = 8;
  options.bottleneck_dim = 4;
  return options;
}

std::unique_ptr<Head> Make(const DinoHeadOptions& options) {
  absl::StatusOr<std::unique_ptr<Head>> head = MakeDinoHead(options, HeadSection(), 0);
  EXPECT_OK(head);
  return head.ok() ? *std::move(head) : nullptr;
}

std::map<std::string, ModelTensor> ByName(const Head& head) {
  std::map<std::string, ModelTensor> tensors;
  for (const ModelTensor& entry : head.Tensors()) tensors[entry.name] = entry;
  return tensors;
}

std::vector<std::string> NamesOf(const Head& head) {
  std::vector<std::string> names;
  for (const ModelTensor& entry : head.Tensors()) names.push_back(entry.name);
  return names;
}

double Length(const Row& row) {
  double sum = 0.0;
  for (const double value : row) sum += value * value;
  return std::sqrt(sum);
}

Row RowOf(const at::Tensor& matrix, int64_t index) {
  Row row(matrix.size(1));
  for (size_t i = 0; i < row.size(); ++i) row[i] = matrix[index][static_cast<int64_t>(i)].item<double>();
  return row;
}

Row Linear(const Row& input, const at::Tensor& weight, const at::Tensor& bias) {
  Row output(weight.size(0));
  for (size_t i = 0; i < output.size(); ++i) {
    const Row row = RowOf(weight, static_cast<int64_t>(i));
    output[i] = bias[static_cast<int64_t>(i)].item<double>();
    for (size_t j = 0; j < input.size(); ++j) output[i] += input[j] * row[j];
  }
  return output;
}

Row Gelu(Row row) {
  for (double& value : row) value = 0.5 * value * (1.0 + std::erf(value / std::sqrt(2.0)));
  return row;
}

TEST(DinoHead, Scores_AreThoseOfItsFormula) {
  DinoHeadOptions options = Options();
  options.normalize_last_layer = false;
  const std::unique_ptr<Head> head = Make(options);
  std::map<std::string, ModelTensor> tensors = ByName(*head);
  const auto value = [&](const std::string& name) { return tensors.at(name).value; };
  for (const char* layer : {"mlp.0", "mlp.2", "mlp.4"}) {  // away from zero, where GELU is a line
    value(std::string(layer) + ".weight").detach().mul_(40.0);
    value(std::string(layer) + ".bias").detach().fill_(0.3);
  }
  value("prototypes0.weight_g").detach().copy_(at::arange(1, 6, at::kFloat).view({5, 1}));

  const at::Tensor features = Features(7, 6);
  const std::vector<at::Tensor> outputs = head->Forward(features);
  ASSERT_EQ(outputs.size(), 1u);
  ASSERT_EQ(outputs[0].sizes(), at::IntArrayRef({7, 5}));
  for (int64_t i = 0; i < 7; ++i) {
    const Row hidden = Gelu(Linear(RowOf(features, i), value("mlp.0.weight"), value("mlp.0.bias")));
    const Row second = Gelu(Linear(hidden, value("mlp.2.weight"), value("mlp.2.bias")));
    const Row bottleneck = Linear(second, value("mlp.4.weight"), value("mlp.4.bias"));
    for (int64_t k = 0; k < 5; ++k) {
      const Row direction = RowOf(value("prototypes0.weight_v"), k);
      double product = 0.0;
      for (size_t j = 0; j < direction.size(); ++j) product += bottleneck[j] * direction[j];
      const double expected = static_cast<double>(k + 1) * product / (Length(bottleneck) * Length(direction));
      EXPECT_NEAR(outputs[0][i][k].item<double>(), expected, 1e-5) << i << ", " << k;
    }
  }
}

TEST(DinoHead, Names_AreVissls) {
  EXPECT_THAT(NamesOf(*Make(Options())),
              ElementsAre("mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias", "mlp.4.weight", "mlp.4.bias",
                          "prototypes0.weight_g", "prototypes0.weight_v"));
  DinoHeadOptions options = Options();
  options.use_bn = true;
  options.num_layers = 2;
  EXPECT_THAT(NamesOf(*Make(options)),
              ElementsAre("mlp.0.weight", "mlp.0.bias", "mlp.1.weight", "mlp.1.bias", "mlp.1.running_mean",
                          "mlp.1.running_var", "mlp.1.num_batches_tracked", "mlp.3.weight", "mlp.3.bias",
                          "prototypes0.weight_g", "prototypes0.weight_v"));
  options.num_layers = 1;
  EXPECT_THAT(NamesOf(*Make(options)),
              ElementsAre("mlp.weight", "mlp.bias", "prototypes0.weight_g", "prototypes0.weight_v"));
}

// normalize_last_layer.
TEST(DinoHead, LengthsOfPrototypes_TrainOnRequest) {
  DinoHeadOptions options = Options();
  for (const bool is_fixed : {true, false}) {
    options.normalize_last_layer = is_fixed;
    const ModelTensor length = ByName(*Make(options)).at("prototypes0.weight_g");
    EXPECT_EQ(length.value.requires_grad(), !is_fixed);
    EXPECT_EQ(length.role, is_fixed ? TensorRole::kBuffer : TensorRole::kWeight);
    EXPECT_TRUE(length.value.eq(1.0).all().item<bool>());
  }
}

// Weight norm leaves the direction no gradient along itself.
TEST(DinoHead, GradientsOfPrototypes_AreAcrossTheirDirections) {
  const std::unique_ptr<Head> head = Make(Options());
  head->Forward(Features(7, 6))[0].pow(2).sum().backward();
  const at::Tensor direction = ByName(*head).at("prototypes0.weight_v").value;
  ASSERT_TRUE(direction.grad().defined());
  EXPECT_GT(direction.grad().abs().max().item<double>(), 1e-3);
  EXPECT_LT((direction.grad() * direction).sum(1).abs().max().item<double>(), 1e-5);
}

TEST(DinoHead, InitialWeights_AreVissls) {
  DinoHeadOptions options = Options();
  options.hidden_dim = 512;
  const std::map<std::string, ModelTensor> tensors = ByName(*Make(options));
  const at::Tensor weight = tensors.at("mlp.2.weight").value;  // 262,144 values
  EXPECT_NEAR(weight.std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR(weight.mean().item<double>(), 0.0, 2e-4);
  EXPECT_GT(weight.abs().max().item<double>(), 0.06) << "normal, not uniform";
  EXPECT_TRUE(tensors.at("mlp.2.bias").value.eq(0.0).all().item<bool>());
}

TEST(DinoHead, UnderAutocast_ScoresAreFloat) {
  const std::unique_ptr<Head> head = Make(Options());
  const AutocastScope autocast(Autocast::kBFloat16);
  EXPECT_EQ(head->Forward(Features(7, 6))[0].scalar_type(), at::kFloat);
}

TEST(DinoHead, ArgumentsThatContradictEachOther_AreRefused) {
  DinoHeadOptions options = Options();
  options.num_clusters = {5, 3};
  EXPECT_THAT(MakeDinoHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dino_head.num_clusters has 2 numbers")));
  options = Options();
  options.in_dim = 0;
  EXPECT_THAT(MakeDinoHead(options, HeadSection(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dino_head.in_dim is not set")));
}

}  // namespace
}  // namespace ssl
