// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/multiple_output_losses.h"

#include <ATen/ops/tensor.h>

#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/reader.h"
#include "ssl/config/yaml.h"
#include "ssl/losses/bce_logits.h"
#include "ssl/losses/cross_entropy.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const at::Tensor kFirst = at::tensor(std::vector<double>{1.0, -0.5, 2.0, 0.3, 0.1, -1.2}).view({2, 3});
const at::Tensor kSecond = at::tensor(std::vector<double>{0.2, 0.7, -1.0, 1.5, -0.4, 0.6}).view({2, 3});
const at::Tensor kNumbers = at::tensor(std::vector<int64_t>{2, -1}, at::kLong);
const at::Tensor kLabels = at::tensor(std::vector<int64_t>{1, 0, -1, 0, 1, 1}, at::kLong).view({2, 3});

template <class Loss>
Loss Read(const std::string& yaml) {
  std::vector<std::string> warnings;
  const absl::StatusOr<ConfigNode> params = ParseYaml(yaml, "test.yaml", &warnings);
  EXPECT_OK(params);
  Loss loss;
  EXPECT_OK(ReadOptions(*params, "config.LOSS.x", UnknownKeys::kError, &loss));
  return loss;
}

TEST(MultipleOutputCrossEntropy, Defaults_AreOneTermForEachOutput) {
  MultipleOutputCrossEntropy loss;

  ASSERT_OK_AND_ASSIGN(const std::vector<at::Tensor> terms, loss.Terms({kFirst, kSecond}, kNumbers));

  ASSERT_THAT(terms, SizeIs(2));
  EXPECT_DOUBLE_EQ(terms[0].item<double>(), CrossEntropy(kFirst, kNumbers, {})->item<double>());
  EXPECT_DOUBLE_EQ(terms[1].item<double>(), CrossEntropy(kSecond, kNumbers, {})->item<double>());
}

TEST(MultipleOutputCrossEntropy, Keys_ReachTheLoss) {
  auto loss = Read<MultipleOutputCrossEntropy>(
      "{weight: [1, 2, 3], reduction: sum, ignore_index: 0, normalize_output: True, temperature: 0.5, "
      "label_smoothing: 0.1}");
  CrossEntropyOptions options;
  options.weight = at::tensor(std::vector<double>{1.0, 2.0, 3.0}, at::kDouble);
  options.reduction = LossReduction::kSum;
  options.ignore_index = 0;
  options.normalize_output = true;
  options.temperature = 0.5;
  options.label_smoothing = 0.1;
  const at::Tensor numbers = at::tensor(std::vector<int64_t>{2, 0}, at::kLong);
  const at::Tensor output = kFirst.to(at::kFloat);
  options.weight = options.weight.to(at::kFloat);

  ASSERT_OK_AND_ASSIGN(const std::vector<at::Tensor> terms, loss.Terms({output}, numbers));

  EXPECT_FLOAT_EQ(terms[0].item<float>(), CrossEntropy(output, numbers, options)->item<float>());
}

TEST(MultipleOutputCrossEntropy, WeightsOfAnotherNumberOfClasses_AreNamed) {
  auto loss = Read<MultipleOutputCrossEntropy>("weight: [1, 2]");

  EXPECT_THAT(loss.Terms({kFirst}, kNumbers),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.LOSS.cross_entropy_multiple_output_single_target.weight has 2 entries, "
                                 "expected 3")));
}

TEST(MultipleOutputCrossEntropy, NullWeight_IsNone) {
  auto loss = Read<MultipleOutputCrossEntropy>("weight: null");

  EXPECT_OK(loss.Terms({kFirst}, kNumbers));
}

TEST(MultipleOutputBceLogits, Terms_AreThoseOfTheLoss) {
  for (const bool normalize : {false, true}) {
    auto loss =
        Read<MultipleOutputBceLogits>(normalize ? "{reduction: none, world_size: 8, normalize_output: True}" : "{}");

    ASSERT_OK_AND_ASSIGN(const std::vector<at::Tensor> terms, loss.Terms({kFirst, kSecond}, kLabels));

    ASSERT_THAT(terms, SizeIs(2));
    EXPECT_DOUBLE_EQ(terms[0].item<double>(), BceLogits(kFirst, kLabels, normalize)->item<double>());
    EXPECT_DOUBLE_EQ(terms[1].item<double>(), BceLogits(kSecond, kLabels, normalize)->item<double>());
  }
}

TEST(MultipleOutputLosses, OutputsThatDoNotFit_AreRefused) {
  EXPECT_THAT(MultipleOutputCrossEntropy().Terms({kFirst, kFirst.narrow(0, 0, 1)}, kNumbers),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1, 3]")));
  EXPECT_THAT(MultipleOutputBceLogits().Terms({kFirst}, kNumbers),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the targets [2]")));
}

}  // namespace
}  // namespace ssl
