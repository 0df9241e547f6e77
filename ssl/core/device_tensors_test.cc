// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_tensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

using testing::SizeIs;

// One layer: a parameter and a counter.
struct Layer : Stateful {
  at::Tensor weight = at::arange(36, at::kFloat).view({2, 2, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor count = at::full({}, 3, at::kLong);
  int64_t number = 7;
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight);
    visitor.Tensor("count", count);
    visitor.Int("number", number);
  }
};

TEST(DeviceTensorsTest, StateMoves_AndHandlesStay) {
  StandinDevice::Install();
  Layer layer;
  layer.weight.requires_grad_();
  const at::Tensor held = layer.weight;
  const at::Tensor expected = layer.weight.detach().clone();
  EXPECT_EQ(DeviceOf(layer), c10::Device(c10::kCPU));
  MoveState(layer, StandinDevice::device());
  EXPECT_EQ(DeviceOf(layer), StandinDevice::device());
  EXPECT_EQ(held.device(), StandinDevice::device());
  EXPECT_EQ(layer.count.device(), StandinDevice::device());
  EXPECT_TRUE(held.is_leaf() && held.requires_grad());
  EXPECT_TRUE(held.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(held.detach().to(at::kCPU).equal(expected));
  held.pow(2).sum().backward();
  EXPECT_TRUE(layer.weight.grad().to(at::kCPU).equal(expected.mul(2)));
  const TransferLog log;
  MoveState(layer, StandinDevice::device());
  EXPECT_THAT(log.uploads(), SizeIs(0)) << "it is there already";
}

TEST(DeviceTensorsTest, BatchIsCopied_ButForItsIndices) {
  StandinDevice::Install();
  Batch batch;
  batch.views = {at::ones({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast)};
  batch.named_inputs["left"] = at::ones({2, 5});
  batch.indices = at::arange(2);
  const Batch copy = CopyOnDevice(batch, StandinDevice::device());
  EXPECT_EQ(copy.views[0].device(), StandinDevice::device());
  EXPECT_TRUE(copy.views[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(copy.named_inputs.at("left").device(), StandinDevice::device());
  EXPECT_FALSE(copy.targets.defined());
  EXPECT_TRUE(copy.indices.is_cpu());
  EXPECT_EQ(copy.size(), 2);
}

}  // namespace
}  // namespace ssl
