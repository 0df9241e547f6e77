// SPDX-License-Identifier: Apache-2.0
//
// VISSL's own numbers are in tests/golden; here, an oracle of plain loops over small shapes, and the errors.
#include "ssl/meters/weighted_knn.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

struct Problem {
  at::Tensor bank, bank_labels, queries, query_labels;
};

Problem RandomProblem(int64_t bank_size, int64_t queries, int64_t classes) {
  return {at::randn({bank_size, 6}), at::randint(classes, {bank_size}, at::kLong), at::randn({queries, 6}),
          at::randint(classes, {queries}, at::kLong)};
}

double Similarity(const at::Tensor& a, const at::Tensor& b, bool normalize) {
  double product = 0.0, norm_a = 0.0, norm_b = 0.0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    const double x = a[i].item<double>(), y = b[i].item<double>();
    product += x * y;
    norm_a += x * x;
    norm_b += y * y;
  }
  return normalize ? product / std::sqrt(norm_a * norm_b) : product;
}

// Classes of one query, the most voted first.
std::vector<int64_t> RankedClasses(const Problem& problem, int64_t query, const WeightedKnnOptions& options) {
  std::vector<std::pair<double, int64_t>> neighbors;
  for (int64_t i = 0; i < problem.bank.size(0); ++i) {
    neighbors.emplace_back(-Similarity(problem.queries[query], problem.bank[i], options.normalize),
                           problem.bank_labels[i].item<int64_t>());
  }
  std::sort(neighbors.begin(), neighbors.end());
  std::vector<double> votes(10, 0.0);
  for (int64_t i = 0; i < options.k; ++i)
    votes[neighbors[i].second] += std::exp(-neighbors[i].first / options.temperature);
  std::vector<int64_t> ranked(10);
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&votes](int64_t a, int64_t b) { return votes[a] > votes[b]; });
  return ranked;
}

class WeightedKnnOracleTest : public ::testing::TestWithParam<std::tuple<int64_t, double, bool>> {};

TEST_P(WeightedKnnOracleTest, AgreesWithPlainLoops) {
  WeightedKnnOptions options;
  std::tie(options.k, options.temperature, options.normalize) = GetParam();
  const Problem problem = RandomProblem(40, 25, 4);
  double hits = 0;
  std::vector<int64_t> predictions;
  for (int64_t query = 0; query < 25; ++query) {
    predictions.push_back(RankedClasses(problem, query, options)[0]);
    hits += predictions.back() == problem.query_labels[query].item<int64_t>();
  }
  ASSERT_OK_AND_ASSIGN(const KnnAccuracy accuracy,
                       WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, options));
  EXPECT_DOUBLE_EQ(accuracy.top1, hits / 25);
  EXPECT_EQ(accuracy.top5, 1.0);  // four classes
  ASSERT_EQ(accuracy.predictions.sizes(), at::IntArrayRef({25, 4}));
  for (int64_t query = 0; query < 25; ++query) {
    EXPECT_EQ(accuracy.predictions[query][0].item<int64_t>(), predictions[query]);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, WeightedKnnOracleTest,
                         ::testing::Combine(::testing::Values(1, 5, 40), ::testing::Values(0.07, 1.0),
                                            ::testing::Bool()));

TEST(WeightedKnnTest, QueryInTheBank_IsFound) {
  const Problem problem = RandomProblem(500, 1, 10);
  WeightedKnnOptions options;
  options.k = 1;
  ASSERT_OK_AND_ASSIGN(const KnnAccuracy accuracy,
                       WeightedKnn(problem.bank, problem.bank_labels, problem.bank, problem.bank_labels, options));
  EXPECT_EQ(accuracy.top1, 1.0);
}

TEST(WeightedKnnTest, ZeroVectors_AreNoNan) {
  Problem problem = RandomProblem(10, 3, 2);
  problem.queries = at::zeros({3, 6});
  EXPECT_OK(WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, {5, 0.07, true, {}}));
}

// Labels that are identifiers: memory is for the classes that occur, not for all numbers below. Classes without a vote
// still rank by their number, those that do not occur too.
TEST(WeightedKnnTest, GapsBetweenClasses_CostNothingAndChangeNothing) {
  const Problem problem = RandomProblem(40, 25, 4);
  const WeightedKnnOptions options = {3, 0.07, true, {}};
  const auto spread = [](const at::Tensor& labels, int64_t distance) { return labels.mul(distance).add(1); };
  ASSERT_OK_AND_ASSIGN(const KnnAccuracy near, WeightedKnn(problem.bank, spread(problem.bank_labels, 3),
                                                           problem.queries, spread(problem.query_labels, 3), options));
  ASSERT_OK_AND_ASSIGN(const KnnAccuracy far,
                       WeightedKnn(problem.bank, spread(problem.bank_labels, 600000000), problem.queries,
                                   spread(problem.query_labels, 600000000), options));
  EXPECT_EQ(near.top1, far.top1);
  ASSERT_EQ(near.predictions.sizes(), at::IntArrayRef({25, 5}));
  EXPECT_TRUE(at::equal(near.predictions.select(1, 0).sub(1).div(3, "trunc"),
                        far.predictions.select(1, 0).sub(1).div(600000000, "trunc")));
  Problem shifted = problem;
  shifted.bank_labels = spread(problem.bank_labels, 2);  // 1, 3, 5, 7
  for (int64_t query = 0; query < 25; ++query) {
    const std::vector<int64_t> ranked = RankedClasses(shifted, query, options);
    ASSERT_OK_AND_ASSIGN(const KnnAccuracy one,
                         WeightedKnn(shifted.bank, shifted.bank_labels, problem.queries.slice(0, query, query + 1),
                                     spread(problem.query_labels, 2).slice(0, query, query + 1), options));
    for (int64_t rank = 0; rank < 5; ++rank) EXPECT_EQ(one.predictions[0][rank].item<int64_t>(), ranked[rank]) << query;
  }
}

TEST(WeightedKnnTest, MoreNeighboursThanSamples_IsRefused) {
  const Problem problem = RandomProblem(10, 3, 2);
  EXPECT_THAT(
      WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, {11, 0.07, true, {}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("k is 11, expected 1 to the 10 samples")));
}

TEST(WeightedKnnTest, FeatureThatIsNotFinite_IsRefused) {
  Problem problem = RandomProblem(10, 3, 2);
  problem.queries = problem.queries.clone();
  problem.queries[2][4].fill_(NAN);
  EXPECT_THAT(
      WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, {5, 0.07, true, {}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row 2 of the queries has values that are not")));
  problem = RandomProblem(10, 3, 2);
  problem.bank = problem.bank.clone();
  problem.bank[7][0].fill_(-INFINITY);
  EXPECT_THAT(
      WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, {5, 0.07, false, {}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row 7 of the bank")));
}

// A block of features that are whole images takes seconds however small the bank is.
TEST(WeightedKnnTest, Progress_ComesAfterFewQueries) {
  const Problem problem = RandomProblem(40, 500, 4);
  std::vector<int64_t> done = {0};
  WeightedKnnOptions options;
  options.on_progress = [&done](int64_t queries) { done.push_back(queries); };
  ASSERT_OK(WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, options));
  for (size_t i = 1; i < done.size(); ++i) EXPECT_LE(done[i] - done[i - 1], 64);
  EXPECT_EQ(done.back(), 500);
}

// The bank is so large that a block holds a few queries only.
TEST(WeightedKnnTest, StopBetweenBlocks_IsCancelled) {
  const Problem problem = RandomProblem(1 << 20, 40, 2);
  StopToken stop;
  std::vector<int64_t> done;
  WeightedKnnOptions options;
  options.stop = &stop;
  options.on_progress = [&](int64_t queries) {
    done.push_back(queries);
    stop.Request(kStopTerminate);
  };
  EXPECT_THAT(WeightedKnn(problem.bank, problem.bank_labels, problem.queries, problem.query_labels, options),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_LT(done[0], 40);
}

TEST(WeightedKnnTest, ShapesThatDoNotFit_AreRefused) {
  const Problem problem = RandomProblem(10, 3, 2);
  EXPECT_THAT(WeightedKnn(problem.bank, problem.query_labels, problem.queries, problem.query_labels, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bank is [10, 6] with 3 labels")));
}

}  // namespace
}  // namespace ssl
