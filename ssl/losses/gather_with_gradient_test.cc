// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/gather_with_gradient.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// A world of one that loses its connection.
class BrokenCommunicator : public Communicator {
 public:
  explicit BrokenCommunicator(bool gathers) : gathers_(gathers) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  absl::Status AllReduce(at::Tensor&, ReduceOp) override { return absl::DeadlineExceededError("rank 1 is gone"); }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override {
    if (!gathers_) return absl::DeadlineExceededError("rank 1 is gone");
    return tensor.unsqueeze(0);
  }
  absl::Status Broadcast(at::Tensor&, int64_t) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return absl::AbortedError("rank 1 is gone"); }

 private:
  const bool gathers_;
};

TEST(GatherWithGradientTest, WorldOfOne_IsTheIdentity) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const at::Tensor rows = at::arange(6, at::kFloat).view({2, 3}).requires_grad_();
  const at::Tensor weights = at::arange(6, at::kFloat).view({1, 2, 3}) + 0.5;
  ASSERT_OK_AND_ASSIGN(const at::Tensor all, GatherWithGradient(rows, *communicator));
  EXPECT_TRUE(at::equal(all, rows.unsqueeze(0)));

  (all * weights).sum().backward();

  EXPECT_TRUE(at::equal(rows.grad(), weights[0]));
}

TEST(GatherWithGradientTest, Gradient_IsThatOfTheSumOfAllRanksLosses) {
  constexpr int64_t kRanks = 3;
  ThreadWorld world(kRanks, absl::Seconds(60));
  EXPECT_OK(world.Run([](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    const at::Tensor rows = at::full({2, 2}, static_cast<double>(rank)).requires_grad_();
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, GatherWithGradient(rows, communicator));
    // Rank r weighs the rows of rank k by 10 r + k.
    const at::Tensor weights = (at::arange(kRanks, at::kFloat) + 10.0 * static_cast<double>(rank)).view({kRanks, 1, 1});
    for (int64_t other = 0; other < kRanks; ++other) EXPECT_EQ(all[other][1][1].item<int64_t>(), other);

    (all * weights).sum().backward();

    EXPECT_TRUE(at::equal(rows.grad(), at::full({2, 2}, 30.0 + 3.0 * static_cast<double>(rank))));
    return absl::OkStatus();
  }));
}

TEST(GatherWithGradientTest, GradientOfOthers_IsNotOverwritten) {
  ThreadWorld world(2, absl::Seconds(60));
  EXPECT_OK(world.Run([](Communicator& communicator) {
    const at::Tensor rows = at::ones({2}).requires_grad_();
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, GatherWithGradient(rows, communicator));
    const at::Tensor gradient = at::ones({2, 2});
    all.backward(gradient);
    EXPECT_TRUE(at::equal(gradient, at::ones({2, 2})));
    EXPECT_TRUE(at::equal(rows.grad(), at::full({2}, 2.0)));
    return absl::OkStatus();
  }));
}

TEST(GatherWithGradientTest, WithoutGradients_ThereIsNoGraph) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const at::Tensor all, GatherWithGradient(at::ones({2}).requires_grad_(), *communicator));
  EXPECT_FALSE(all.requires_grad());
}

TEST(GatherWithGradientTest, FailureToGather_IsReturned) {
  BrokenCommunicator communicator(/*gathers=*/false);
  EXPECT_THAT(GatherWithGradient(at::ones({2}), communicator),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 1 is gone")));
}

TEST(GatherWithGradientTest, FailureInTheBackwardPass_IsReturned) {
  BrokenCommunicator communicator(/*gathers=*/true);
  const at::Tensor rows = at::ones({2}).requires_grad_();
  ASSERT_OK_AND_ASSIGN(const at::Tensor all, GatherWithGradient(rows, communicator));
  EXPECT_THAT(GuardTorch("backward",
                         [&] {
                           all.sum().backward();
                           return absl::OkStatus();
                         }),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("gradient of gathered rows: rank 1 is gone")));
}

}  // namespace
}  // namespace ssl
