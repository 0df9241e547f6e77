// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include "gtest/gtest.h"
#include "ssl/meters/weighted_knn.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl::golden {
namespace {

void CheckKnn(const Case& golden) {
  WeightedKnnOptions options;
  options.k = golden.Count("topk");
  options.temperature = golden.Double("sigma");
  options.normalize = golden.Flag("l2_normalize");
  for (const Step& step : golden.steps) {
    ASSERT_OK_AND_ASSIGN(const KnnAccuracy accuracy,
                         WeightedKnn(step.Input("train_features"), step.Input("train_labels").to(at::kLong),
                                     step.Input("test_features"), step.Input("test_labels").to(at::kLong), options));

    EXPECT_NEAR(100.0 * accuracy.top1, step.Expected("top1").f64, 1e-9);
    EXPECT_NEAR(100.0 * accuracy.top5, step.Expected("top5").f64, 1e-9);
  }
}

TEST(KnnGolden, AccuracyIsThatOfVissl) { RunCategory("knn", {{"knn", &CheckKnn}}); }

}  // namespace
}  // namespace ssl::golden
