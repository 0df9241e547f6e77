// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_tensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

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

}  // namespace
}  // namespace ssl
