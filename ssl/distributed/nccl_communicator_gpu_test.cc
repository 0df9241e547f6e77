// SPDX-License-Identifier: Apache-2.0
//
// What NCCL adds to the rules of all communicators, which communicator_gpu_test holds it to.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/nccl_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor OnGpu(double value) {
  return at::full({1000, 1000}, value, at::TensorOptions(at::kFloat).device(at::kCUDA));
}

GlooOptions WorldOfOne() {
  GlooOptions options;
  options.rendezvous.file = MakeTempDir("rendezvous") + "/store";
  options.interface = "lo";
  return options;
}

// The stream has them in this order; nobody waits for one before the next is given.
TEST(NcclCommunicatorGpuTest, OperationsAndComputation_FollowEachOther) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> world, MakeNcclCommunicator(WorldOfOne()));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, world->Duplicate());
  at::Tensor value = OnGpu(1.0);
  std::vector<std::pair<at::Tensor, std::unique_ptr<Work>>> started;
  for (int i = 0; i < 50; ++i) {
    value.add_(1.0);
    ASSERT_OK(world->AllReduce(value, ReduceOp::kSum));
    at::Tensor copy = value.clone();
    std::unique_ptr<Work> work = duplicate->StartAllReduce(copy, ReduceOp::kMax);
    started.emplace_back(std::move(copy), std::move(work));
  }
  EXPECT_EQ(value.sum().item<double>(), 51.0e6);
  for (size_t i = 0; i < started.size(); ++i) {
    ASSERT_OK(started[i].second->Wait());
    EXPECT_EQ(started[i].first.mean().item<double>(), static_cast<double>(i) + 2.0);
  }
}

TEST(NcclCommunicatorGpuTest, TensorsOfTheCpu_GoBesideThoseOfTheGpu) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> world, MakeNcclCommunicator(WorldOfOne()));
  at::Tensor on_gpu = OnGpu(3.0);
  at::Tensor on_cpu = at::full({2}, 4, at::kLong);
  ASSERT_OK(world->AllReduce(on_gpu, ReduceOp::kMean));
  ASSERT_OK(world->AllReduce(on_cpu, ReduceOp::kMean));
  EXPECT_TRUE(on_gpu.is_cuda());
  EXPECT_TRUE(on_cpu.is_cpu());
  EXPECT_EQ(on_gpu[1][1].item<float>(), 3.0F);
  EXPECT_EQ(on_cpu[1].item<int64_t>(), 4);
}

// As one whose peers hang. The stream has seconds of work before the operation can begin.
TEST(NcclCommunicatorGpuTest, OperationThatIsLate_IsTheErrorOfAllLaterCalls) {
  GlooOptions options = WorldOfOne();
  options.timeout = absl::Seconds(1);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> world, MakeNcclCommunicator(options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, world->Duplicate());
  at::Tensor late = OnGpu(1.0);
  ASSERT_OK(world->AllReduce(late, ReduceOp::kSum));
  const at::Tensor factor = at::full({8192, 8192}, 1.0, at::TensorOptions(at::kDouble).device(at::kCUDA));
  at::Tensor product = factor.clone();
  for (int i = 0; i < 200; ++i) at::mm_out(product, factor, factor);
  ASSERT_OK(world->AllReduce(late, ReduceOp::kSum));
  at::Tensor on_cpu = at::full({1}, 1, at::kLong);
  absl::Status failure;
  while (failure.ok()) failure = duplicate->AllReduce(on_cpu, ReduceOp::kSum);
  EXPECT_THAT(failure, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("did not finish within 1s")));
  EXPECT_EQ(DetailOf(failure, kDetailCause), kCausePeer);
  EXPECT_EQ(world->AllReduce(late, ReduceOp::kSum), failure);
  EXPECT_EQ(world->StartAllReduce(late, ReduceOp::kSum)->Wait(), failure);
  EXPECT_EQ(world->AllGather(late).status(), failure);
  EXPECT_EQ(duplicate->Barrier(), failure);
}

// A mistake of whoever starts ranks: an error, not the end of the process.
TEST(NcclCommunicatorGpuTest, TwoRanksOnOneGpu_AreRefused) {
  const absl::Status status = ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> world, MakeNcclCommunicator(options));
    at::Tensor tensor = OnGpu(1.0);
    const absl::Status refused = world->AllReduce(tensor, ReduceOp::kSum);
    EXPECT_EQ(DetailOf(refused, kDetailCause), kCausePeer);
    at::Tensor on_cpu = at::full({1}, 1, at::kLong);
    EXPECT_OK(world->AllReduce(on_cpu, ReduceOp::kSum)) << "the ranks still talk";
    return refused;
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("Float [1000, 1000] over NCCL on rank "), HasSubstr("invalid usage"))));
}

}  // namespace
}  // namespace ssl
