// SPDX-License-Identifier: Apache-2.0
//
// Assignments on the GPU, which a kernel computes, against those on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/kernels/balance_by_kernel.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

at::Tensor MakeScores(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat).mul(0.7).add(0.3)).view(shape);
}

void ExpectTheSame(const at::Tensor& scores, const SinkhornOptions& options) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, SinkhornAssignments(scores, options, *communicator));
  const at::Tensor on_gpu = scores.to(at::kCUDA);
  ASSERT_TRUE(HasBalanceKernel(on_gpu)) << scores.sizes();
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, SinkhornAssignments(on_gpu, options, *communicator));
  EXPECT_TRUE(actual.is_cuda());
  EXPECT_LE((actual.cpu() - expected).abs().max().item<float>(), 1e-5f) << scores.sizes();
}

TEST(SinkhornGpu, Shapes_AgreeWithTheCpu) {
  for (const int64_t samples : {1, 5, 64, 3904}) {
    for (const int64_t prototypes : {1, 30, 3000, 4096}) {
      ExpectTheSame(MakeScores({samples, prototypes}), {});
      ExpectTheSame(MakeScores({2, samples, prototypes}), {});
    }
  }
}

TEST(SinkhornGpu, PrototypeWithoutMass_IsRepairedAlike) {
  at::Tensor scores = MakeScores({12, 5});
  scores.select(1, 2).fill_(-20.0);
  ExpectTheSame(scores, {});
}

TEST(SinkhornGpu, Hard_AgreesWithTheCpu) {
  SinkhornOptions options;
  options.hard = true;
  ExpectTheSame(MakeScores({2, 64, 300}), options);
}

TEST(SinkhornGpu, MorePrototypesThanTheKernelTakes_AreLeftToTheOperators) {
  EXPECT_FALSE(HasBalanceKernel(MakeScores({2, 4097}).to(at::kCUDA)));
}

}  // namespace
}  // namespace ssl
