// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/tensor_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

constexpr int64_t kFloats = int64_t{1} << 20;
constexpr int64_t kBytes = 4 * kFloats;

class TensorMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstallTensorMemory();
    ReleaseTensorMemory();
  }
};

TEST_F(TensorMemoryTest, FreedBlock_IsHandedOutAgain) {
  at::Tensor first = at::empty({kFloats}, at::kFloat);
  const void* address = first.const_data_ptr();
  first.reset();
  EXPECT_GE(GetTensorMemory().kept, kBytes);
  const at::Tensor second = at::empty({kFloats}, at::kFloat);
  EXPECT_EQ(second.const_data_ptr(), address);
  EXPECT_EQ(GetTensorMemory().kept, 0);
}

TEST_F(TensorMemoryTest, LiveTensors_DoNotOverlap) {
  std::vector<at::Tensor> tensors;
  for (int64_t i = 0; i < 20; ++i) tensors.push_back(at::full({kFloats + 1000 * i}, i, at::kFloat));
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(tensors[i].eq(i).sum().item<int64_t>(), tensors[i].numel());
}

TEST_F(TensorMemoryTest, Data_IsAligned) {
  const at::Tensor tensor = at::empty({kFloats + 3}, at::kFloat);
  EXPECT_EQ(reinterpret_cast<size_t>(tensor.const_data_ptr()) % 64, 0u);
}

TEST_F(TensorMemoryTest, InUse_CountsLiveLargeBlocks) {
  const int64_t before = GetTensorMemory().in_use;
  const at::Tensor small = at::empty({16}, at::kFloat);
  EXPECT_EQ(GetTensorMemory().in_use, before);
  const at::Tensor large = at::empty({kFloats}, at::kFloat);
  EXPECT_GE(GetTensorMemory().in_use - before, kBytes);
  EXPECT_LT(GetTensorMemory().in_use - before, kBytes + 8192);
}

TEST_F(TensorMemoryTest, Installation_IsSeen) { EXPECT_TRUE(TensorMemoryIsInstalled()); }

TEST_F(TensorMemoryTest, Peak_IsTheMostInUseSinceItsReset) {
  const at::Tensor kept = at::empty({kFloats}, at::kFloat);
  const int64_t before = GetTensorMemory().in_use;
  ResetTensorMemoryPeak();
  EXPECT_EQ(GetTensorMemory().peak, before);
  at::empty({3 * kFloats}, at::kFloat);
  at::empty({2 * kFloats}, at::kFloat);
  EXPECT_GE(GetTensorMemory().peak - before, 3 * kBytes);
  EXPECT_LT(GetTensorMemory().peak - before, 4 * kBytes);
  ResetTensorMemoryPeak();
  EXPECT_EQ(GetTensorMemory().peak, before);
}

TEST_F(TensorMemoryTest, SlightlyLargerBlock_Serves) {
  at::empty({kFloats + kFloats / 8}, at::kFloat);
  const at::Tensor smaller = at::empty({kFloats}, at::kFloat);
  EXPECT_EQ(GetTensorMemory().kept, 0);
}

TEST_F(TensorMemoryTest, MuchLargerBlock_IsKeptForItsOwnSize) {
  at::empty({2 * kFloats}, at::kFloat);
  const at::Tensor smaller = at::empty({kFloats}, at::kFloat);
  EXPECT_GE(GetTensorMemory().kept, 2 * kBytes);
}

TEST_F(TensorMemoryTest, Release_GivesKeptBlocksBack) {
  at::empty({kFloats}, at::kFloat);
  ASSERT_GT(GetTensorMemory().kept, 0);
  ReleaseTensorMemory();
  EXPECT_EQ(GetTensorMemory().kept, 0);
}

TEST_F(TensorMemoryTest, OtherSizes_PushOutWhatIsKept) {
  for (int64_t i = 0; i < 200; ++i) at::empty({kFloats + 4096 * i}, at::kFloat);
  EXPECT_LE(GetTensorMemory().kept, 300 * kBytes / 2);
}

TEST_F(TensorMemoryTest, ImpossibleSize_IsAnExceptionNotACrash) {
  EXPECT_THROW(at::empty({int64_t{1} << 50}, at::kFloat), c10::Error);
}

TEST_F(TensorMemoryTest, ConvolutionsTakeRawMemoryFromIt) {
  const at::Tensor images = at::ones({2, 16, 64, 64}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor output = at::conv2d(images, at::ones({16, 16, 3, 3}), {}, 1, 1);
  EXPECT_EQ(output[0][0][1][1].item<float>(), 16.0f * 9.0f);
}

TEST_F(TensorMemoryTest, EmptyTensor_NeedsNoMemory) {
  const int64_t before = GetTensorMemory().in_use;
  EXPECT_EQ(at::empty({0}, at::kFloat).numel(), 0);
  EXPECT_EQ(GetTensorMemory().in_use, before);
}

TEST_F(TensorMemoryTest, ThreadsShareTheBlocks) {
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int64_t i = 0; i < 50; ++i) {
        const at::Tensor tensor = at::full({kFloats / 4}, thread, at::kFloat);
        EXPECT_EQ(tensor[kFloats / 8].item<float>(), static_cast<float>(thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ssl
