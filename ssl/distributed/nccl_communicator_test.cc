// SPDX-License-Identifier: Apache-2.0
//
// Of a program with NCCL, on a machine without a GPU. With one: nccl_communicator_gpu_test.cc.
#include "ssl/distributed/nccl_communicator.h"

#include <ATen/ops/full.h>

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

absl::Status ExpectSum(Communicator& communicator, int64_t own, int64_t expected) {
  at::Tensor sum = at::full({1}, own, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(sum, ReduceOp::kSum));
  EXPECT_EQ(sum.item<int64_t>(), expected);
  const std::unique_ptr<Work> work = communicator.StartAllReduce(sum, ReduceOp::kMax);
  SSL_RETURN_IF_ERROR(work->Wait());
  EXPECT_EQ(sum.item<int64_t>(), expected);
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(sum));
  EXPECT_EQ(all.size(0), communicator.size());
  SSL_ASSIGN_OR_RETURN(const at::Tensor row, communicator.ReduceScatter(all, ReduceOp::kMean));
  EXPECT_EQ(row.item<int64_t>(), expected);
  SSL_RETURN_IF_ERROR(communicator.Broadcast(sum, communicator.size() - 1));
  EXPECT_EQ(communicator.Broadcast(sum, communicator.size()).code(), absl::StatusCode::kInvalidArgument);
  return communicator.Barrier();
}

TEST(NcclCommunicatorTest, TensorsOfTheCpu_NeedNoGpu) {
  EXPECT_TRUE(HasNccl());
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> world, MakeNcclCommunicator(options));
    const int64_t rank = world->rank();
    EXPECT_EQ(world->size(), 2);
    SSL_RETURN_IF_ERROR(ExpectSum(*world, rank + 1, 3));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> duplicate, world->Duplicate());
    SSL_RETURN_IF_ERROR(ExpectSum(*duplicate, rank + 5, 11));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> alone, world->Split(rank));
    EXPECT_EQ(alone->size(), 1);
    return ExpectSum(*alone, rank, rank);
  }));
}

TEST(NcclCommunicatorTest, OptionsThatCannotBe_AreInvalidArgument) {
  GlooOptions options;
  options.rendezvous.host = "localhost";
  options.rendezvous.rank = 2;
  EXPECT_EQ(MakeNcclCommunicator(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ssl
