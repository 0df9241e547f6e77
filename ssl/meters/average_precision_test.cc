// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/average_precision.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

// The formula of the header for one class.
double Oracle(const at::Tensor& scores, const at::Tensor& targets) {
  std::vector<std::pair<double, int64_t>> ranked;  // (-score, label) of the known samples
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const int64_t label = targets[i].item<int64_t>();
    if (label != -1) ranked.emplace_back(-scores[i].item<double>(), label);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<double> precision;
  double positives = 0.0;
  for (const auto& [score, label] : ranked) {
    positives += label == 1 ? 1.0 : 0.0;
    precision.push_back(positives / static_cast<double>(precision.size() + 1));
  }
  if (positives == 0.0) return -1.0;
  double sum = 0.0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (ranked[i].second == 1) sum += *std::max_element(precision.begin() + i, precision.end());
  }
  return sum / positives;
}

TEST(AveragePrecision, AgreesWithTheFormula) {
  for (const int64_t samples : {1, 2, 9, 40}) {
    const at::Tensor scores = at::randn({samples, 5});
    const at::Tensor targets = at::randint(-1, 2, {samples, 5}, at::kLong);

    const at::Tensor precision = AveragePrecision(scores, targets);

    for (int64_t c = 0; c < 5; ++c) {
      EXPECT_NEAR(precision[c].item<double>(), Oracle(scores.select(1, c), targets.select(1, c)), 1e-12)
          << samples << " samples, class " << c;
    }
  }
}

TEST(AveragePrecision, PerfectAndWorstOrders) {
  const at::Tensor scores = at::tensor(std::vector<double>{.9, .1, .8, .2, .1, .9, .2, .8}).view({4, 2});
  const at::Tensor targets = at::tensor(std::vector<int64_t>{1, 1, 1, 1, 0, 0, 0, 0}, at::kLong).view({4, 2});

  const at::Tensor precision = AveragePrecision(scores, targets);

  EXPECT_DOUBLE_EQ(precision[0].item<double>(), 1.0);
  EXPECT_DOUBLE_EQ(precision[1].item<double>(), 0.5);
}

TEST(AveragePrecision, ClassWithoutPositives_IsMinusOne) {
  const at::Tensor scores = at::tensor(std::vector<double>{.9, .1}).view({2, 1});

  for (const int64_t label : {0, -1}) {
    const at::Tensor targets = at::tensor(std::vector<int64_t>{label, label}, at::kLong).view({2, 1});
    EXPECT_EQ(AveragePrecision(scores, targets).item<double>(), -1.0);
  }
}

}  // namespace
}  // namespace ssl
