// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/bce_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor Doubles(const std::vector<double>& values, int64_t rows) {
  return at::tensor(values, at::kDouble).view({rows, -1});
}

// The formula of the header, entry by entry.
double Oracle(const at::Tensor& scores, const at::Tensor& labels) {
  double loss = 0.0;
  for (int64_t c = 0; c < scores.size(1); ++c) {
    double sum = 0.0;
    double known = 0.0;
    for (int64_t b = 0; b < scores.size(0); ++b) {
      const double label = labels[b][c].item<double>();
      if (label == -1.0) continue;
      const double probability = 1.0 / (1.0 + std::exp(-scores[b][c].item<double>()));
      sum -= label * std::log(probability) + (1.0 - label) * std::log(1.0 - probability);
      known += 1.0;
    }
    loss += sum / std::max(1.0, known);
  }
  return loss;
}

TEST(BceLogits, UnknownLabels_DoNotCount) {
  const at::Tensor scores = Doubles({0.5, -1.0, 2.0, 0.1, 1.5, -0.7}, 2);
  const at::Tensor labels = at::tensor(std::vector<int64_t>{1, 0, -1, -1, 1, -1}, at::kLong).view({2, 3});

  const absl::StatusOr<at::Tensor> loss = BceLogits(scores, labels, /*normalize_output=*/false);

  ASSERT_OK(loss);
  EXPECT_NEAR(loss->item<double>(), Oracle(scores, labels), 1e-12);
}

TEST(BceLogits, NormalizedOutput_HasUnitRows) {
  const at::Tensor scores = Doubles({3.0, -4.0}, 1);
  const at::Tensor labels = Doubles({1.0, 0.0}, 1);

  const absl::StatusOr<at::Tensor> loss = BceLogits(scores, labels, /*normalize_output=*/true);

  ASSERT_OK(loss);
  EXPECT_NEAR(loss->item<double>(), Oracle(scores / 5.0, labels), 1e-12);
}

TEST(BceLogits, OnlyUnknownLabels_AreALossOfZeroWithZeroGradients) {
  const at::Tensor scores = Doubles({0.5, -1.0}, 1).set_requires_grad(true);

  const absl::StatusOr<at::Tensor> loss = BceLogits(scores, Doubles({-1.0, -1.0}, 1), false);

  ASSERT_OK(loss);
  loss->backward();
  EXPECT_EQ(loss->item<double>(), 0.0);
  EXPECT_EQ(scores.grad().abs().sum().item<double>(), 0.0);
}

TEST(BceLogits, ShortTypes_AreComputedInFloat32) {
  const absl::StatusOr<at::Tensor> loss =
      BceLogits(Doubles({0.5, -1.0}, 1).to(at::kBFloat16), Doubles({1.0, 0.0}, 1), false);

  ASSERT_OK(loss);
  EXPECT_EQ(loss->scalar_type(), at::kFloat);
}

TEST(BceLogits, ShapesThatDiffer_AreNamed) {
  EXPECT_THAT(BceLogits(Doubles({1.0, 2.0}, 1), Doubles({1.0}, 1), false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output has shape [1, 2] and the targets [1, 1], expected [B, C] for both")));
}

}  // namespace
}  // namespace ssl
