// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor Long(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// [rows, columns] of smooth values.
at::Tensor Wave(int64_t rows, int64_t columns) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(2.0 * std::sin(0.7 * static_cast<double>(i) + 0.3));
  return at::tensor(values, at::kDouble).view({rows, columns});
}

// log softmax(scores[row] / temperature)[column], by definition.
double LogSoftmax(const at::Tensor& scores, int64_t row, int64_t column, double temperature) {
  const auto at = [&](int64_t c) { return scores[row][c].item<double>() / temperature; };
  double sum = 0.0;
  for (int64_t c = 0; c < scores.size(1); ++c) sum += std::exp(at(c));
  return at(column) - std::log(sum);
}

double Value(const absl::StatusOr<at::Tensor>& loss) {
  EXPECT_OK(loss);
  return loss.ok() ? loss->item<double>() : std::nan("");
}

TEST(CrossEntropy, ClassNumbers_AreTheMeanOfNegativeLogProbabilities) {
  const at::Tensor scores = Wave(4, 3);
  CrossEntropyOptions options;
  options.temperature = 0.5;

  double expected = 0.0;
  const std::vector<int64_t> labels = {2, 0, 1, 1};
  for (int64_t b = 0; b < 4; ++b) expected -= LogSoftmax(scores, b, labels[b], 0.5) / 4.0;

  EXPECT_NEAR(Value(CrossEntropy(scores, Long(labels), options)), expected, 1e-12);
  options.reduction = LossReduction::kSum;
  EXPECT_NEAR(Value(CrossEntropy(scores, Long(labels), options)), 4.0 * expected, 1e-12);
}

TEST(CrossEntropy, IgnoredSamples_DoNotCount) {
  const at::Tensor scores = Wave(3, 3);
  CrossEntropyOptions options;

  const double expected = -(LogSoftmax(scores, 0, 1, 1.0) + LogSoftmax(scores, 2, 2, 1.0)) / 2.0;

  EXPECT_NEAR(Value(CrossEntropy(scores, Long({1, -1, 2}), options)), expected, 1e-12);
  options.ignore_index = 0;
  EXPECT_NEAR(Value(CrossEntropy(scores, Long({1, 0, 2}), options)), expected, 1e-12);
}

TEST(CrossEntropy, BatchOfIgnoredSamples_HasNoMean) {
  EXPECT_TRUE(std::isnan(Value(CrossEntropy(Wave(2, 3), Long({-1, -1}), {}))));
}

TEST(CrossEntropy, ClassWeights_WeighSamplesAndTheirMean) {
  const at::Tensor scores = Wave(3, 2);
  CrossEntropyOptions options;
  options.weight = at::tensor(std::vector<double>{1.0, 3.0}, at::kDouble);

  const double sum =
      LogSoftmax(scores, 0, 0, 1.0) + 3.0 * (LogSoftmax(scores, 1, 1, 1.0) + LogSoftmax(scores, 2, 1, 1.0));

  EXPECT_NEAR(Value(CrossEntropy(scores, Long({0, 1, 1}), options)), -sum / 7.0, 1e-12);
}

TEST(CrossEntropy, LabelSmoothing_MovesMassToAllClasses) {
  const at::Tensor scores = Wave(2, 4);
  CrossEntropyOptions options;
  options.label_smoothing = 0.1;

  double expected = 0.0;
  const std::vector<int64_t> labels = {3, 1};
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t c = 0; c < 4; ++c) {
      expected -= (c == labels[b] ? 0.925 : 0.025) * LogSoftmax(scores, b, c, 1.0) / 2.0;
    }
  }

  EXPECT_NEAR(Value(CrossEntropy(scores, Long(labels), options)), expected, 1e-12);
}

TEST(CrossEntropy, NormalizedOutput_HasUnitRows) {
  CrossEntropyOptions options;
  options.normalize_output = true;
  const at::Tensor scores = at::tensor(std::vector<double>{3.0, 4.0}, at::kDouble).view({1, 2});

  const double expected = -LogSoftmax(scores / 5.0, 0, 0, 1.0);

  EXPECT_NEAR(Value(CrossEntropy(scores, Long({0}), options)), expected, 1e-12);
}

TEST(CrossEntropy, SoftTargets_WeighAllClasses) {
  const at::Tensor scores = at::eye(3, at::kFloat) * 10.0;
  const at::Tensor targets = at::eye(3, at::kFloat) * 0.7 + 0.1;

  double expected = 0.0;
  for (int64_t c = 0; c < 3; ++c) expected -= (c == 0 ? 0.8 : 0.1) * LogSoftmax(scores, 0, c, 1.0);

  EXPECT_NEAR(Value(CrossEntropy(scores, targets, {})), expected, 1e-6);
}

TEST(CrossEntropy, IntegerWeights_CountUnknownAsAbsent) {
  const at::Tensor scores = Wave(2, 3);

  const double expected = -(LogSoftmax(scores, 0, 1, 1.0) + LogSoftmax(scores, 1, 0, 1.0)) / 2.0;

  EXPECT_NEAR(Value(CrossEntropy(scores, Long({0, 1, -1, 1, 0, 0}).view({2, 3}), {})), expected, 1e-12);
}

TEST(CrossEntropy, ShortTypes_AreComputedInFloat32) {
  const at::Tensor scores = Wave(4, 3).to(at::kBFloat16);

  const absl::StatusOr<at::Tensor> loss = CrossEntropy(scores, Long({0, 1, 2, 0}), {});

  ASSERT_OK(loss);
  EXPECT_EQ(loss->scalar_type(), at::kFloat);
  EXPECT_NEAR(Value(loss), Value(CrossEntropy(scores.to(at::kDouble), Long({0, 1, 2, 0}), {})), 1e-6);
}

TEST(CrossEntropy, LabelOutsideTheClasses_IsNamedWithTheirNumber) {
  for (const int64_t label : {3, -2, 1000}) {
    EXPECT_THAT(CrossEntropy(Wave(2, 3), Long({0, label}), {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("sample 1 of the batch has the label ", label)),
                               HasSubstr("0 to 2 (the model has 3 classes) or ignore_index -1"))));
  }
}

TEST(CrossEntropy, ShapesThatDoNotFit_AreNamed) {
  const auto refused = [](const char* text) { return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)); };
  EXPECT_THAT(CrossEntropy(Wave(2, 3), Long({0}), {}), refused("output has shape [2, 3] and the targets Long [1]"));
  EXPECT_THAT(CrossEntropy(Wave(2, 3), Wave(2, 2), {}), refused("Double [2, 2]"));
  EXPECT_THAT(CrossEntropy(Wave(2, 3), Wave(1, 2).view({2}), {}), refused("Double [2], expected [B, C] with Long [B]"));
  EXPECT_THAT(CrossEntropy(Wave(2, 3).view({6}), Long({0}), {}), refused("[6]"));
}

}  // namespace
}  // namespace ssl
