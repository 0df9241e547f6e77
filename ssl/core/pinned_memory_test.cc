// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/pinned_memory.h"

#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"

namespace ssl {
namespace {

at::Tensor EmptyFor(const c10::Device& device) {
  return EmptyPinned({2, 3, 4, 5}, at::kByte, at::MemoryFormat::ChannelsLast, device);
}

TEST(PinnedMemory, OfADevice_IsItsOwn_OfTheCpuCommon) {
  StandinDevice::Install();
  const at::Tensor pinned = EmptyFor(StandinDevice::device());
  EXPECT_TRUE(IsPinnedForStandin(pinned.const_data_ptr()));
  EXPECT_TRUE(pinned.is_cpu());
  EXPECT_EQ(pinned.scalar_type(), at::kByte);
  EXPECT_EQ(pinned.sizes(), at::IntArrayRef({2, 3, 4, 5}));
  EXPECT_TRUE(pinned.is_contiguous(at::MemoryFormat::ChannelsLast));

  const int64_t before = PinnedAllocations();
  EXPECT_FALSE(IsPinnedForStandin(EmptyFor(c10::kCPU).const_data_ptr()));
  EXPECT_EQ(PinnedAllocations(), before);
}

TEST(PinnedMemory, OfAnAcceleratorWithoutAny_IsCommon) {
  // No such device is in this process.
  EXPECT_EQ(EmptyFor(c10::Device(c10::kXPU, 0)).numel(), 120);
}

}  // namespace
}  // namespace ssl
