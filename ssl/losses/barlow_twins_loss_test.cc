// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/barlow_twins_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <cstdint>
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

struct ColumnStatistics {
  double mean = 0.0;
  double deviation = 0.0;  // with the epsilon
};

ColumnStatistics Statistics(const std::vector<at::Tensor>& ranks, int64_t column) {
  const double count = static_cast<double>(ranks.size()) * static_cast<double>(ranks[0].size(0));
  ColumnStatistics statistics;
  for (const at::Tensor& rows : ranks) {
    for (int64_t i = 0; i < rows.size(0); ++i) statistics.mean += rows[i][column].item<double>() / count;
  }
  double variance = 0.0;
  for (const at::Tensor& rows : ranks) {
    for (int64_t i = 0; i < rows.size(0); ++i) {
      variance += std::pow(rows[i][column].item<double>() - statistics.mean, 2) / count;
    }
  }
  statistics.deviation = std::sqrt(variance + 1e-5);
  return statistics;
}

// The formula of the header, term by term. ranks[r]: [2*B, D].
double NaiveLoss(const std::vector<at::Tensor>& ranks, const BarlowTwinsLossOptions& options) {
  const int64_t batch = ranks[0].size(0) / 2;
  const int64_t width = ranks[0].size(1);
  std::vector<ColumnStatistics> statistics;
  for (int64_t j = 0; j < width; ++j) statistics.push_back(Statistics(ranks, j));
  const auto normalised = [&](const at::Tensor& rows, int64_t row, int64_t column) {
    return (rows[row][column].item<double>() - statistics[column].mean) / statistics[column].deviation;
  };
  double loss = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      double c = 0.0;
      for (const at::Tensor& rows : ranks) {
        for (int64_t b = 0; b < batch; ++b) c += normalised(rows, b, i) * normalised(rows, batch + b, j);
      }
      c /= static_cast<double>(batch) * static_cast<double>(ranks.size());
      loss += i == j ? (c - 1) * (c - 1) : options.lambda * c * c;
    }
  }
  return options.scale * loss;
}

// Slope along one number of rank 0's embeddings.
double NaiveSlope(const std::vector<at::Tensor>& ranks, int64_t row, int64_t column,
                  const BarlowTwinsLossOptions& options) {
  constexpr double kStep = 1e-5;
  double losses[2];
  for (const int side : {0, 1}) {
    std::vector<at::Tensor> moved = ranks;
    moved[0] = ranks[0].clone();
    moved[0][row][column] += side == 0 ? -kStep : kStep;
    losses[side] = NaiveLoss(moved, options);
  }
  return (losses[1] - losses[0]) / (2 * kStep);
}

struct LossAndGradient {
  double loss = 0.0;
  at::Tensor gradient;
};

absl::StatusOr<LossAndGradient> Compute(const at::Tensor& embeddings, const BarlowTwinsLossOptions& options,
                                        Communicator& communicator) {
  const at::Tensor leaf = embeddings.detach().clone().requires_grad_();
  SSL_ASSIGN_OR_RETURN(const at::Tensor loss, BarlowTwinsLoss(leaf, options, communicator));
  loss.backward();
  return LossAndGradient{loss.item<double>(), leaf.grad()};
}

class BarlowTwinsLossTest : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(BarlowTwinsLossTest, SmallShapes_AgreeWithTheFormula) {
  for (const int64_t batch : {2, 5}) {
    for (const int64_t width : {1, 4}) {
      const BarlowTwinsLossOptions options{0.3, 0.5};
      const at::Tensor embeddings = Wave(2 * batch, width, 0.3);
      ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(embeddings, options, *communicator_));
      EXPECT_NEAR(result.loss, NaiveLoss({embeddings}, options), 1e-12) << batch << " x " << width;
    }
  }
}

TEST_F(BarlowTwinsLossTest, Defaults_HaveVisslsNumber) {
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(Wave(8, 3, 0.5), {}, *communicator_));
  EXPECT_NEAR(result.loss, 0.216175, 1e-6);
}

TEST_F(BarlowTwinsLossTest, Gradient_AgreesWithFiniteDifferences) {
  const BarlowTwinsLossOptions options{0.3, 0.5};
  const at::Tensor embeddings = Wave(6, 3, 0.2);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(embeddings, options, *communicator_));
  for (int64_t row = 0; row < 6; ++row) {
    EXPECT_NEAR(result.gradient[row][1].item<double>(), NaiveSlope({embeddings}, row, 1, options), 1e-8) << row;
  }
}

TEST_F(BarlowTwinsLossTest, ScaledLoss_ScalesTheGradient) {
  const at::Tensor embeddings = Wave(6, 3, 0.2).requires_grad_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, BarlowTwinsLoss(embeddings, {}, *communicator_));
  (loss * 8).backward();
  ASSERT_OK_AND_ASSIGN(const LossAndGradient plain, Compute(embeddings, {}, *communicator_));
  EXPECT_TRUE(embeddings.grad().allclose(8 * plain.gradient));
}

TEST_F(BarlowTwinsLossTest, TwoRanks_ShareOneLossAndItsSlope) {
  const std::vector<at::Tensor> ranks = {Wave(4, 3, 0.1), Wave(4, 3, 1.7) * 2 + 0.5};
  const BarlowTwinsLossOptions options{0.3, 0.5};
  std::vector<LossAndGradient> results(2);
  ThreadWorld world(2, absl::Seconds(60));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    const size_t rank = static_cast<size_t>(communicator.rank());
    SSL_ASSIGN_OR_RETURN(results[rank], Compute(ranks[rank], options, communicator));
    return absl::OkStatus();
  }));
  for (const LossAndGradient& result : results) EXPECT_NEAR(result.loss, NaiveLoss(ranks, options), 1e-12);
  for (int64_t row = 0; row < 4; ++row) {
    EXPECT_NEAR(results[0].gradient[row][2].item<double>(), NaiveSlope(ranks, row, 2, options), 1e-8) << row;
  }
}

TEST_F(BarlowTwinsLossTest, LargeMean_LosesNoPrecision) {
  const at::Tensor embeddings = Wave(16, 4, 0.3);
  const at::Tensor moved = (embeddings + 300).to(at::kFloat);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(moved, {}, *communicator_));
  EXPECT_NEAR(result.loss, NaiveLoss({embeddings}, {}), 1e-5);
}

TEST_F(BarlowTwinsLossTest, ConstantFeatures_HaveAFiniteLossAndGradient) {
  ASSERT_OK_AND_ASSIGN(const LossAndGradient result, Compute(at::ones({8, 4}), {}, *communicator_));
  EXPECT_NEAR(result.loss, 4 * 0.024, 1e-6);  // no correlation at all
  EXPECT_TRUE(result.gradient.isfinite().all().item<bool>());
}

TEST_F(BarlowTwinsLossTest, OneStepAgainstTheGradient_LowersTheLoss) {
  const at::Tensor embeddings = Wave(4, 3, 0.5);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient before, Compute(embeddings, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const LossAndGradient after, Compute(embeddings - 0.1 * before.gradient, {}, *communicator_));
  EXPECT_LT(after.loss, before.loss);
}

TEST_F(BarlowTwinsLossTest, ShortTypesAndAutocast_AreComputedInFloat32) {
  const at::Tensor embeddings = Wave(8, 16, 0.5).to(at::kBFloat16);
  ASSERT_OK_AND_ASSIGN(const LossAndGradient full, Compute(embeddings.to(at::kFloat), {}, *communicator_));
  const AutocastScope autocast(Autocast::kBFloat16);
  ASSERT_OK_AND_ASSIGN(const at::Tensor loss, BarlowTwinsLoss(embeddings, {}, *communicator_));
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_EQ(loss.item<double>(), full.loss);
}

TEST_F(BarlowTwinsLossTest, OtherShapes_AreRefused) {
  constexpr auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(BarlowTwinsLoss(at::ones({5, 3}), {}, *communicator_),
              StatusIs(invalid, HasSubstr("[5, 3], expected [rows, width] with an even number of rows")));
  EXPECT_THAT(BarlowTwinsLoss(at::ones({0, 3}), {}, *communicator_), StatusIs(invalid, HasSubstr("[0, 3]")));
  EXPECT_THAT(BarlowTwinsLoss(at::ones({4}), {}, *communicator_), StatusIs(invalid, HasSubstr("[4]")));
}

}  // namespace
}  // namespace ssl
