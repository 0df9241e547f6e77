// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/sinkhorn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using Matrix = std::vector<std::vector<double>>;  // [samples][prototypes]

at::Tensor MakeScores(int64_t samples, int64_t prototypes, double phase) {
  return at::sin(at::arange(samples * prototypes, at::kFloat) * 0.7 + phase).view({samples, prototypes});
}

// The definition, entry by entry: prototypes to their share of the mass, then samples to 1/n, num_iters times.
Matrix NaiveSinkhorn(const at::Tensor& scores, const SinkhornOptions& options) {
  const int64_t n = scores.size(0);
  const int64_t k = scores.size(1);
  Matrix q(n, std::vector<double>(k));
  double total = 0.0;
  double mass_total = 0.0;
  for (int64_t j = 0; j < k; ++j) mass_total += std::pow(j + 1, -options.powerlaw);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) total += q[i][j] = std::exp(scores[i][j].item<double>() / options.epsilon);
  }
  for (auto& row : q) {
    for (double& entry : row) entry /= total;
  }
  for (int64_t iteration = 0; iteration < options.num_iters; ++iteration) {
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0.0;
      for (int64_t i = 0; i < n; ++i) sum += q[i][j];
      const double mass = std::pow(j + 1, -options.powerlaw) / mass_total;
      for (int64_t i = 0; i < n; ++i) q[i][j] *= mass / sum;
    }
    for (auto& row : q) {
      double sum = 0.0;
      for (const double entry : row) sum += entry;
      for (double& entry : row) entry /= sum * n;
    }
  }
  for (auto& row : q) {
    for (double& entry : row) entry *= n;
  }
  return q;
}

void ExpectNear(const at::Tensor& actual, const Matrix& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].size(); ++j) {
      EXPECT_NEAR(actual[i][j].item<double>(), expected[i][j], tolerance) << "entry " << i << ", " << j;
    }
  }
}

class SinkhornTest : public ::testing::Test {
 protected:
  at::Tensor Assign(const at::Tensor& scores, const SinkhornOptions& options) {
    absl::StatusOr<at::Tensor> result = SinkhornAssignments(scores, options, *communicator_);
    EXPECT_OK(result);
    return result.ok() ? *result : at::Tensor();
  }

  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(SinkhornTest, SmallShapes_AgreeWithTheDefinition) {
  for (const int64_t samples : {1, 2, 5, 8}) {
    for (const int64_t prototypes : {1, 3, 7}) {
      for (const bool double_precision : {false, true}) {
        for (const double powerlaw : {0.0, 0.5}) {
          SCOPED_TRACE(::testing::Message() << samples << " x " << prototypes << ", double " << double_precision);
          SinkhornOptions options;
          options.double_precision = double_precision;
          options.powerlaw = powerlaw;
          const at::Tensor scores = MakeScores(samples, prototypes, 0.3);
          ExpectNear(Assign(scores, options), NaiveSinkhorn(scores, options), double_precision ? 1e-7 : 2e-5);
        }
      }
    }
  }
}

TEST_F(SinkhornTest, ManyIterations_BalancePrototypesAndSamples) {
  SinkhornOptions options;
  options.num_iters = 200;
  options.epsilon = 0.3;
  const at::Tensor assignments = Assign(MakeScores(12, 4, 0.0), options);
  EXPECT_TRUE(at::allclose(assignments.sum(1), at::ones({12})));
  EXPECT_TRUE(at::allclose(assignments.sum(0), at::ones({4}) * 3.0, 1e-3, 1e-3));
}

TEST_F(SinkhornTest, Hard_GivesTheOneHotOfTheSoftMaximum) {
  SinkhornOptions options;
  const at::Tensor scores = MakeScores(6, 5, 1.0);
  const at::Tensor soft = Assign(scores, options);
  options.hard = true;
  const at::Tensor hard = Assign(scores, options);
  EXPECT_TRUE(at::equal(hard.argmax(1), soft.argmax(1)));
  EXPECT_TRUE(at::equal(hard.sum(1), at::ones({6})));
  EXPECT_EQ(hard.max().item<float>(), 1.0f);
}

TEST_F(SinkhornTest, LeadingDimension_HoldsIndependentProblems) {
  const at::Tensor first = MakeScores(4, 3, 0.0);
  const at::Tensor second = MakeScores(4, 3, 2.0);
  const at::Tensor both = Assign(at::stack({first, second}), {});
  EXPECT_TRUE(at::allclose(both[0], Assign(first, {}), 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(both[1], Assign(second, {}), 1e-6, 1e-7));
}

TEST_F(SinkhornTest, LargeScores_StayFiniteInSinglePrecision) {
  const at::Tensor assignments = Assign(MakeScores(6, 4, 0.0) * 100.0, {});
  EXPECT_TRUE(assignments.isfinite().all().item<bool>());
}

TEST_F(SinkhornTest, InfiniteWeight_CountsAsTheLargestFiniteOne) {
  const at::Tensor weights = MakeScores(4, 3, 0.0).exp();
  at::Tensor with_maximum = weights.clone();
  with_maximum[2][1] = weights.max();
  at::Tensor with_infinity = weights.clone();
  with_infinity[2][1] = std::numeric_limits<float>::infinity();
  // The replaced entry may itself hold the maximum; here it does not.
  ASSERT_LT(weights[2][1].item<float>(), weights.max().item<float>());
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, BalanceAssignments(with_maximum, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, BalanceAssignments(with_infinity, {}, *communicator_));
  EXPECT_TRUE(at::equal(actual, expected));
}

TEST_F(SinkhornTest, PrototypeWithoutMass_StillGetsItsShare) {
  at::Tensor weights = at::ones({4, 2});
  weights.select(1, 1).zero_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, BalanceAssignments(weights, {}, *communicator_));
  EXPECT_TRUE(at::allclose(actual, at::ones({4, 2}) * 0.5, 1e-4, 1e-4));
}

TEST_F(SinkhornTest, ScoresWithAGraph_GiveAssignmentsWithoutOne) {
  const at::Tensor scores = MakeScores(4, 3, 0.0).requires_grad_();
  EXPECT_FALSE(Assign(scores, {}).requires_grad());
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST_F(SinkhornTest, TwoRanks_GetTheAssignmentsOfTheWholeBatch) {
  const at::Tensor scores = MakeScores(8, 5, 0.4);
  const at::Tensor expected = Assign(scores, {});
  std::vector<at::Tensor> parts(2);
  ThreadWorld world(2, absl::Seconds(60));
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    absl::StatusOr<at::Tensor> part = SinkhornAssignments(scores.narrow(0, 4 * rank, 4), {}, communicator);
    if (part.ok()) parts[rank] = *part;
    return part.status();
  }));
  EXPECT_TRUE(at::allclose(at::cat(parts), expected, 1e-5, 1e-6));
}

TEST_F(SinkhornTest, EmptyScores_AreRefusedWithTheirShape) {
  EXPECT_THAT(SinkhornAssignments(at::empty({0, 3}), {}, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0, 3]")));
  EXPECT_THAT(SinkhornAssignments(at::empty({3}), {}, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[3]")));
}

TEST_F(SinkhornTest, EpsilonOfZero_IsRefused) {
  SinkhornOptions options;
  options.epsilon = 0.0;
  EXPECT_THAT(SinkhornAssignments(at::zeros({2, 2}), options, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("epsilon is 0")));
}

}  // namespace
}  // namespace ssl
