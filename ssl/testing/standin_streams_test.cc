// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_streams.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"

namespace ssl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StandinStreams : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  static at::Tensor Pinned() { return at::zeros({2}, at::TensorOptions().pinned_memory(true)); }

  static float First(const at::Tensor& tensor) { return tensor.to(at::kCPU).const_data_ptr<float>()[0]; }

  // As who copies beside the current stream.
  void CopyAside(const at::Tensor& from, const at::Tensor& to) {
    const c10::StreamGuard guard(side_);
    to.copy_(from, /*non_blocking=*/true);
    copied_.record(side_);
  }

  const c10::impl::VirtualGuardImpl guard_{c10::DeviceType::PrivateUse1};
  const c10::Stream side_ = guard_.getStreamFromGlobalPool(StandinDevice::device());
  c10::Event copied_{c10::DeviceType::PrivateUse1};
  const at::Tensor there_ = at::zeros({2}, at::TensorOptions(StandinDevice::device()));
};

TEST_F(StandinStreams, OfCopiesAside_NothingIsThere_UntilSomebodyWaits) {
  const at::Tensor here = Pinned();
  CopyAside(here.fill_(1.0f), there_);
  EXPECT_FALSE(copied_.query());
  EXPECT_FALSE(side_.query());
  EXPECT_EQ(First(there_), 0.0f);
  copied_.block(guard_.getStream(StandinDevice::device()));
  EXPECT_TRUE(copied_.query());
  EXPECT_EQ(First(there_), 1.0f);

  CopyAside(here.fill_(2.0f), there_);
  here.fill_(3.0f);  // too early
  copied_.synchronize();
  EXPECT_EQ(First(there_), 3.0f);

  CopyAside(here.fill_(4.0f), there_);
  side_.synchronize();
  EXPECT_EQ(First(there_), 4.0f);
}

TEST_F(StandinStreams, AnEvent_IsThatOfTheMoment) {
  const at::Tensor first = Pinned().fill_(1.0f);
  const at::Tensor second = Pinned().fill_(2.0f);
  CopyAside(first, there_);
  {
    const c10::StreamGuard guard(side_);
    there_.copy_(second, /*non_blocking=*/true);
  }
  copied_.synchronize();
  EXPECT_EQ(First(there_), 1.0f);
  guard_.synchronizeDevice(0);
  EXPECT_EQ(First(there_), 2.0f);
}

TEST_F(StandinStreams, WhatIsNotPinned_AndKernels_AreNotLate) {
  CopyAside(at::full({2}, 1.0f), there_);
  EXPECT_EQ(First(there_), 1.0f);
  {
    const c10::StreamGuard guard(side_);
    there_.copy_(Pinned().fill_(2.0f), /*non_blocking=*/true);
    there_.add_(1.0f);
  }
  EXPECT_EQ(First(there_), 3.0f);
}

TEST_F(StandinStreams, Log_HasTheOrder) {
  const at::Tensor here = Pinned();
  const StreamLog log;
  EXPECT_THAT(log.entries(), IsEmpty());
  CopyAside(here, there_);
  StreamLog::Note("a step");
  copied_.block(guard_.getStream(StandinDevice::device()));
  copied_.synchronize();
  EXPECT_THAT(log.entries(),
              ElementsAre("side copies", "side records", "a step", "main waits for side", "host waits for side"));
}

TEST_F(StandinStreams, PinnedMemory_IsCounted_AndKnownUntilItIsFreed) {
  const int64_t before = PinnedAllocations();
  at::Tensor here = Pinned();
  EXPECT_EQ(PinnedAllocations(), before + 1);
  const void* const memory = here.const_data_ptr();
  EXPECT_TRUE(here.is_pinned());
  EXPECT_TRUE(here.narrow(0, 1, 1).is_pinned());
  EXPECT_FALSE(at::empty({2}).is_pinned());
  here.reset();
  EXPECT_FALSE(IsPinnedForStandin(memory));
}

TEST_F(StandinStreams, PinnedMemory_IsKeptUntilTheCacheIsEmptied) {
  at::getHostAllocator(StandinDevice::device().type())->empty_cache();
  at::Tensor here = Pinned();
  const void* const memory = here.const_data_ptr();
  here.reset();
  EXPECT_EQ(UnusedPinnedBytes(), 2 * static_cast<int64_t>(sizeof(float)));
  EXPECT_EQ(Pinned().const_data_ptr(), memory) << "the next tensor of its size";
  at::getHostAllocator(StandinDevice::device().type())->empty_cache();
  EXPECT_EQ(UnusedPinnedBytes(), 0);
}

}  // namespace
}  // namespace ssl
