// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/swav_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor MakeScores(int64_t rows, int64_t prototypes, double phase) {
  return at::sin(at::arange(rows * prototypes, at::kFloat) * 1.3 + phase).view({rows, prototypes});
}

double LogSoftmax(const at::Tensor& row, int64_t k, double temperature) {
  double sum = 0.0;
  for (int64_t j = 0; j < row.size(0); ++j) sum += std::exp(row[j].item<double>() / temperature);
  return row[k].item<double>() / temperature - std::log(sum);
}

// The formula of the header, term by term, for one head.
double NaiveLoss(const at::Tensor& scores, const SwavLossOptions& options, Communicator& communicator) {
  const int64_t batch = scores.size(0) / options.num_crops;
  double loss = 0.0;
  for (const int64_t crop : options.crops_for_assign) {
    const at::Tensor q = *SinkhornAssignments(scores.narrow(0, crop * batch, batch), options.sinkhorn, communicator);
    for (int64_t other = 0; other < options.num_crops; ++other) {
      if (other == crop) continue;
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t k = 0; k < scores.size(1); ++k) {
          loss -= q[b][k].item<double>() * LogSoftmax(scores[other * batch + b], k, options.temperature) / batch;
        }
      }
    }
  }
  return loss / (options.num_crops - 1) / options.crops_for_assign.size();
}

class SwavLossTest : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(SwavLossTest, SmallShapes_AgreeWithTheFormula) {
  const std::vector<std::vector<int64_t>> assign_crops = {{0}, {0, 1}, {1, 0}};
  for (const int64_t num_crops : {2, 3, 5}) {
    for (const int64_t batch : {1, 3}) {
      for (const std::vector<int64_t>& crops : assign_crops) {
        SwavLossOptions options;
        options.num_crops = num_crops;
        options.crops_for_assign = crops;
        const at::Tensor scores = MakeScores(num_crops * batch, 4, 0.1);
        ASSERT_OK_AND_ASSIGN(const SwavLossResult result, SwavLoss({scores}, {}, options, *communicator_));
        EXPECT_NEAR(result.loss.item<double>(), NaiveLoss(scores, options, *communicator_), 2e-5);
        EXPECT_EQ(result.assignments[0].sizes(), at::IntArrayRef({static_cast<int64_t>(crops.size()), batch, 4}));
      }
    }
  }
}

TEST_F(SwavLossTest, Gradient_AgreesWithFiniteDifferences) {
  SwavLossOptions options;
  options.num_crops = 3;
  options.crops_for_assign = {0};  // scores of crops 1 and 2 do not change the assignments
  const at::Tensor scores = MakeScores(6, 4, 0.5).requires_grad_();
  ASSERT_OK_AND_ASSIGN(const SwavLossResult result, SwavLoss({scores}, {}, options, *communicator_));
  result.loss.backward();
  EXPECT_TRUE(at::equal(scores.grad().narrow(0, 0, 2), at::zeros({2, 4}))) << "assignments carry no gradient";
  const double step = 1e-2;
  for (int64_t row = 2; row < 6; ++row) {
    at::Tensor above = scores.detach().clone();
    at::Tensor below = scores.detach().clone();
    above[row][1] += step;
    below[row][1] -= step;
    const double slope =
        (NaiveLoss(above, options, *communicator_) - NaiveLoss(below, options, *communicator_)) / (2 * step);
    EXPECT_NEAR(scores.grad()[row][1].item<double>(), slope, 2e-3) << "row " << row;
  }
}

TEST_F(SwavLossTest, SeveralHeads_GiveTheMean) {
  const at::Tensor first = MakeScores(6, 4, 0.5);
  const at::Tensor second = MakeScores(6, 7, 1.5);
  ASSERT_OK_AND_ASSIGN(const SwavLossResult both, SwavLoss({first, second}, {}, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const SwavLossResult one, SwavLoss({first}, {}, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const SwavLossResult two, SwavLoss({second}, {}, {}, *communicator_));
  EXPECT_NEAR(both.loss.item<double>(), 0.5 * (one.loss.item<double>() + two.loss.item<double>()), 1e-6);
}

TEST_F(SwavLossTest, QueueScores_TakePartInBalancingOnly) {
  const at::Tensor scores = MakeScores(6, 4, 0.5);
  const at::Tensor queue = MakeScores(10, 4, 2.0).view({2, 5, 4});
  ASSERT_OK_AND_ASSIGN(const SwavLossResult with, SwavLoss({scores}, {queue}, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const SwavLossResult without, SwavLoss({scores}, {}, {}, *communicator_));
  EXPECT_EQ(with.assignments[0].sizes(), without.assignments[0].sizes());
  EXPECT_FALSE(at::allclose(with.assignments[0], without.assignments[0]));
}

TEST_F(SwavLossTest, Bfloat16Scores_AreComputedInFloat32) {
  const at::Tensor scores = MakeScores(6, 4, 0.5).to(at::kBFloat16);
  ASSERT_OK_AND_ASSIGN(const SwavLossResult low, SwavLoss({scores}, {}, {}, *communicator_));
  ASSERT_OK_AND_ASSIGN(const SwavLossResult full, SwavLoss({scores.to(at::kFloat)}, {}, {}, *communicator_));
  EXPECT_EQ(low.loss.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(low.loss, full.loss));
}

TEST_F(SwavLossTest, TwoRanks_HaveTheMeanLossOfTheWholeBatch) {
  // Rank r has images 2r and 2r+1 of both crops.
  const at::Tensor scores = MakeScores(8, 5, 0.4);
  ASSERT_OK_AND_ASSIGN(const SwavLossResult whole, SwavLoss({scores}, {}, {}, *communicator_));
  std::vector<double> losses(2);
  ThreadWorld world(2, absl::Seconds(60));
  ASSERT_OK(world.Run([&](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    const at::Tensor local = scores.view({2, 4, 5}).narrow(1, 2 * rank, 2).reshape({4, 5});
    absl::StatusOr<SwavLossResult> result = SwavLoss({local}, {}, {}, communicator);
    if (result.ok()) losses[rank] = result->loss.item<double>();
    return result.status();
  }));
  EXPECT_NEAR(0.5 * (losses[0] + losses[1]), whole.loss.item<double>(), 1e-5);
  EXPECT_NE(losses[0], losses[1]);
}

TEST_F(SwavLossTest, RowsThatAreNoMultipleOfTheCrops_AreRefused) {
  EXPECT_THAT(SwavLoss({MakeScores(5, 4, 0.0)}, {}, {}, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[5, 4], expected a multiple of 2")));
}

TEST_F(SwavLossTest, AssignCropOutOfRange_IsRefused) {
  SwavLossOptions options;
  options.crops_for_assign = {0, 2};
  EXPECT_THAT(SwavLoss({MakeScores(4, 4, 0.0)}, {}, options, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("crops_for_assign holds 2")));
}

TEST_F(SwavLossTest, OneCrop_IsRefused) {
  SwavLossOptions options;
  options.num_crops = 1;
  EXPECT_THAT(SwavLoss({MakeScores(4, 4, 0.0)}, {}, options, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("num_crops is 1")));
}

TEST_F(SwavLossTest, QueueOfAnotherWidth_IsRefused) {
  EXPECT_THAT(SwavLoss({MakeScores(4, 4, 0.0)}, {at::zeros({2, 3, 5})}, {}, *communicator_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[2, 3, 5]")));
}

}  // namespace
}  // namespace ssl
