// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/collective_check.h"

#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/torch_guard.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(CheckCollective, Ok_Passes) { EXPECT_NO_THROW(CheckCollective(absl::OkStatus(), "norms over ranks")); }

TEST(CheckCollective, Failure_IsLibTorchsOwnTypeOfIt) {
  EXPECT_THROW(CheckCollective(absl::UnavailableError("rank 1 ended"), "norms over ranks"), c10::DistBackendError);
}

absl::Status NoAnswer() {
  return WithDetail(WithDetail(absl::DeadlineExceededError("no answer from rank 1"), kDetailCause, kCausePeer),
                    "ssl/silent", "process 17 on a");
}

TEST(CheckCollective, Failure_KeepsItsCodeAndDetails) {
  const absl::Status status = GuardTorch("optimizer step", [] {
    CheckCollective(NoAnswer(), "norms over ranks");
    return absl::OkStatus();
  });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, "optimizer step: norms over ranks: no answer from rank 1"));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
  EXPECT_EQ(DetailOf(status, "ssl/silent"), "process 17 on a");
  EXPECT_EQ(DetailOf(status, kDetailException), "") << "a Status that was returned has none";
}

// What waits for the operation in the backward pass of its input.
struct WaitInBackward : public torch::autograd::Function<WaitInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& input) { return input.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    CheckCollective(NoAnswer(), "gradient");
    return {};
  }
};

TEST(CheckCollective, Failure_PassesThroughAutograd) {
  const absl::Status status = GuardTorch("backward", [] {
    const at::Tensor input = at::ones({2}).requires_grad_();
    WaitInBackward::apply(input).sum().backward();
    return absl::OkStatus();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, "backward: gradient: no answer from rank 1"));
  EXPECT_EQ(DetailOf(status, "ssl/silent"), "process 17 on a");
}

}  // namespace
}  // namespace ssl
