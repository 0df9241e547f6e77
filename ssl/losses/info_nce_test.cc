// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/info_nce.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/autocast.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Row i, column j: sin(i + 2 j + phase).
at::Tensor Wave(int64_t rows, int64_t width, double phase) {
  return at::sin(at::arange(rows, at::kDouble).unsqueeze(1) + 2 * at::arange(width, at::kDouble) + phase);
}

double Similarity(const at::Tensor& left, const at::Tensor& right) {
  double product = 0.0;
  double left_square = 0.0;
  double right_square = 0.0;
  for (int64_t d = 0; d < left.size(0); ++d) {
    const double a = left[d].item<double>();
    const double b = right[d].item<double>();
    product += a * b;
    left_square += a * a;
    right_square += b * b;
  }
  return product / std::sqrt(left_square) / std::sqrt(right_square);
}

// The formula of the header for one rank, term by term. ranks[r]: [V*B, D].
double NaiveLoss(const std::vector<at::Tensor>& ranks, size_t own, const InfoNceOptions& options) {
  const int64_t rows = ranks[own].size(0);
  const int64_t batch = rows / options.num_views;
  double loss = 0.0;
  for (int64_t i = 0; i < rows; ++i) {
    double negatives = 0.0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank != own && !options.negatives_of_all_ranks) continue;
      for (int64_t j = 0; j < rows; ++j) {
        if (rank == own && i % batch == j % batch) continue;
        negatives += std::exp(Similarity(ranks[own][i], ranks[rank][j]) / options.temperature);
      }
    }
    for (int64_t p = i % batch; p < rows; p += batch) {
      if (p == i) continue;
      const double positive = std::exp(Similarity(ranks[own][i], ranks[own][p]) / options.temperature);
      loss -= std::log(positive / (positive + negatives));
    }
  }
  return loss / static_cast<double>(rows * (options.num_views - 1));
}

double SumOfNaiveLosses(const std::vector<at::Tensor>& ranks, const InfoNceOptions& options) {
  double sum = 0.0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) sum += NaiveLoss(ranks, rank, options);
  return sum;
}

// Slope of the sum of all ranks' losses along one number of rank 0's embeddings.
double NaiveSlope(const std::vector<at::Tensor>& ranks, int64_t row, int64_t column, const InfoNceOptions& options) {
  constexpr double kStep = 1e-5;
  double sums[2];
  for (const int side : {0, 1}) {
    std::vector<at::Tensor> moved = ranks;
    moved[0] = ranks[0].clone();
    moved[0][row][column] += side == 0 ? -kStep : kStep;
    sums[side] = SumOfNaiveLosses(moved, options);
  }
  return (sums[1] - sums[0]) / (2 * kStep);
}

struct LossAndGradient {
  double loss = 0.0;
  at::Tensor gradient;
};

absl::StatusOr<LossAndGradient> Compute(const at::Tensor& embeddings, const InfoNceOptions& options,
                                        Communicator& communicator) {
  const at::Tensor leaf = embeddings.detach().clone().requires_grad_();
  SSL_ASSIGN_OR_RETURN(const at::Tensor loss, InfoNce(leaf, options, communicator));
  loss.backward();
  return LossAndGradient{loss.item<double>(), leaf.grad()};
}

class InfoNceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(InfoNceTest, SmallShapes_AgreeWithTheFormula) {
  for (const int64_t num_views : {2, 3, 5}) {
    for (const int64_t batch : {2, 3}) {
      for (const double temperature : {0.1, 0.5}) {
        const InfoNceOptions options{num_views, temperature, true};
        const at::Tensor embeddings = Wave(num_views * batch, 4, 0.3);
        ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(embeddings, options, *communicator_));
        EXPECT_NEAR(result.loss, NaiveLoss({embeddings}, 0, options), 1e-8) << num_views << " views of " << batch;
      }
    }
  }
}

TEST_F(InfoNceTest, TwoViews_HaveSimclrsNumbers) {
  const at::Tensor wave = Wave(4, 3, 0.5);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient sharp, Compute(wave, {2, 0.1, true}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const LossAndGradient soft, Compute(wave, {2, 0.5, true}, *communicator_));
  EXPECT_NEAR(sharp.loss, 9.973948, 1e-6);
  EXPECT_NEAR(soft.loss, 2.392174, 1e-6);
  const at::Tensor pair = at::tensor({1.0, 0.0, 1.0, 0.0, 1.0, 0.0}, at::kDouble).view({2, 3}).repeat({2, 1});
  ASSERT_OK_AND_ASSIGN(const LossAndGradient perfect, Compute(pair, {2, 0.1, true}, *communicator_));
  EXPECT_NEAR(perfect.loss, std::log1p(2 * std::exp(-10.0)), 1e-9);  // two negatives at right angles
}

TEST_F(InfoNceTest, Gradient_AgreesWithFiniteDifferences) {
  for (const int64_t num_views : {2, 3}) {
    const InfoNceOptions options{num_views, 0.3, true};
    const at::Tensor embeddings = Wave(num_views * 2, 3, 0.2);
    ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(embeddings, options, *communicator_));
    for (int64_t row = 0; row < embeddings.size(0); ++row) {
      EXPECT_NEAR(result.gradient[row][1].item<double>(), NaiveSlope({embeddings}, row, 1, options), 1e-6)
          << "row " << row;
    }
  }
}

TEST_F(InfoNceTest, TwoRanks_AgreeWithTheFormulaAndItsSlope) {
  const std::vector<at::Tensor> ranks = {Wave(4, 3, 0.1), Wave(4, 3, 1.7)};
  for (const bool all_ranks : {true, false}) {
    const InfoNceOptions options{2, 0.3, all_ranks};
    std::vector<LossAndGradient> results(2);
    ThreadWorld world(2, absl::Seconds(60));
    ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
      const size_t rank = static_cast<size_t>(communicator.rank());
      SSL_ASSIGN_OR_RETURN(results[rank], Compute(ranks[rank], options, communicator));
      return absl::OkStatus();
    }));
    for (const size_t rank : {0, 1}) EXPECT_NEAR(results[rank].loss, NaiveLoss(ranks, rank, options), 1e-8);
    for (int64_t row = 0; row < 4; ++row) {
      EXPECT_NEAR(results[0].gradient[row][2].item<double>(), NaiveSlope(ranks, row, 2, options), 1e-6)
          << "row " << row << (all_ranks ? ", negatives of all ranks" : ", own negatives");
    }
  }
}

TEST_F(InfoNceTest, LengthOfTheEmbeddings_DoesNotMatter) {
  const at::Tensor embeddings = Wave(4, 3, 0.5);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient one, Compute(embeddings, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const LossAndGradient longer, Compute(embeddings * 7, {}, *communicator_));
  EXPECT_NEAR(one.loss, longer.loss, 1e-9);
}

TEST_F(InfoNceTest, SmallTemperature_DoesNotOverflow) {
  const at::Tensor embeddings = Wave(4, 3, 0.5).to(at::kFloat);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(embeddings, {2, 0.001, true}, *communicator_));
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_TRUE(result.gradient.isfinite().all().item<bool>());
}

TEST_F(InfoNceTest, EqualEmbeddings_HaveTheLossOfGuessing) {
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(at::ones({256, 16}), {}, *communicator_));
  EXPECT_NEAR(result.loss, std::log(255.0), 1e-4);  // one positive among 254 negatives
}

TEST_F(InfoNceTest, OneImage_HasNoLossAndNoGradient) {
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(Wave(3, 4, 0.5), {3, 0.1, true}, *communicator_));
  EXPECT_EQ(result.loss, 0.0);
  EXPECT_TRUE(at::equal(result.gradient, at::zeros({3, 4}, at::kDouble)));
}

TEST_F(InfoNceTest, OneStepAgainstTheGradient_LowersTheLoss) {
  const at::Tensor embeddings = Wave(4, 3, 0.5);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient before, Compute(embeddings, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const LossAndGradient after, Compute(embeddings - 0.01 * before.gradient, {}, *communicator_));
  EXPECT_LT(after.loss, before.loss);
}

TEST_F(InfoNceTest, ShortTypesAndAutocast_AreComputedInFloat32) {
  const at::Tensor embeddings = Wave(8, 16, 0.5).to(at::kBFloat16);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient full, Compute(embeddings.to(at::kFloat), {}, *communicator_));
  const AutocastScope autocast(Autocast::kBFloat16);
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, InfoNce(embeddings, {}, *communicator_));
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.item<double>(), full.loss);
}

TEST_F(InfoNceTest, WrongArguments_AreRefusedWithTheirNumbers) {
  constexpr auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(InfoNce(at::ones({5, 3}), {}, *communicator_),
              StatusIs(invalid, HasSubstr("[5, 3], expected [rows, width] with a multiple of 2")));
  EXPECT_THAT(InfoNce(at::ones({0, 3}), {}, *communicator_), StatusIs(invalid, HasSubstr("[0, 3]")));
  EXPECT_THAT(InfoNce(at::ones({4}), {}, *communicator_), StatusIs(invalid, HasSubstr("[4]")));
  EXPECT_THAT(InfoNce(at::ones({4, 3}), {1, 0.1, true}, *communicator_),
              StatusIs(invalid, HasSubstr("num_views is 1, expected at least 2")));
}

}  // namespace
}  // namespace ssl
