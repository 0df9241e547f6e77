// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/preview_communicator.h"

#include <ATen/ops/full.h>

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(PreviewCommunicatorTest, OtherRanksPassWhatThisOnePasses) {
  const std::unique_ptr<Communicator> world = MakePreviewCommunicator(4);
  EXPECT_EQ(world->rank(), 0);
  EXPECT_EQ(world->size(), 4);
  at::Tensor tensor = at::full({2}, 3, at::kFloat);
  EXPECT_OK(world->AllReduce(tensor, ReduceOp::kMean));
  EXPECT_OK(world->AllReduce(tensor, ReduceOp::kMax));
  EXPECT_EQ(tensor[1].item<float>(), 3);
  EXPECT_OK(world->AllReduce(tensor, ReduceOp::kSum));
  EXPECT_EQ(tensor[1].item<float>(), 12);
  ASSERT_OK_AND_ASSIGN(const at::Tensor gathered, world->AllGather(tensor));
  EXPECT_EQ(gathered.sizes().vec(), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(gathered[3][0].item<float>(), 12);
  EXPECT_OK(world->Broadcast(tensor, 3));
  EXPECT_THAT(world->Broadcast(tensor, 4), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, world->Duplicate());
  EXPECT_EQ(duplicate->size(), 4);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> part, world->Split(0));
  EXPECT_EQ(part->size(), 4);
}

}  // namespace
}  // namespace ssl
