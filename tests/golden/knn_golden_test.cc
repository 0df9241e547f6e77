// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include "gtest/gtest.h"
#include "ssl/engines/weighted_knn.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl::golden {
namespace {

void CheckKnn(const Case& golden) {
  WeightedKnnOptions options;
  options.k = golden.Int("topk");
  options.temperature = golden.Double("sigma");
  options.normalize = golden.params.Find("l2_normalize")->AsBool().value();
  const auto& inputs = golden.steps[0].inputs;
  const auto& outputs = golden.steps[0].outputs;

  ASSERT_OK_AND_ASSIGN(const KnnAccuracy accuracy,
                       WeightedKnn(inputs.at("train_features"), inputs.at("train_labels").to(at::kLong),
                                   inputs.at("test_features"), inputs.at("test_labels").to(at::kLong), options));

  EXPECT_NEAR(100.0 * accuracy.top1, outputs.at("top1").f64, 1e-9);
  EXPECT_NEAR(100.0 * accuracy.top5, outputs.at("top5").f64, 1e-9);
}

TEST(KnnGolden, AccuracyIsThatOfVissl) { RunCategory("knn", {{"knn", &CheckKnn}}); }

}  // namespace
}  // namespace ssl::golden
