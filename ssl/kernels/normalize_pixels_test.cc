// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/normalize_pixels.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<double> kMean = {0.485, 0.456, 0.406};
const std::vector<double> kStd = {0.229, 0.224, 0.225};

// Every value in every channel, channels-last: [batch, channels, height, 64].
at::Tensor MakePixels(int64_t batch, int64_t channels, int64_t height) {
  const at::Tensor values = at::arange(batch * channels * height * 64, at::kLong).mul(7).remainder(256);
  return values.to(at::kByte).view({batch, height, 64, channels}).permute({0, 3, 1, 2});
}

float Expected(const at::Tensor& pixels, int64_t b, int64_t c, int64_t y, int64_t x) {
  const float unit = static_cast<float>(pixels[b][c][y][x].item<int>()) / 255.0f;
  return (unit - static_cast<float>(kMean[c])) / static_cast<float>(kStd[c]);
}

TEST(NormalizePixels, EveryValueOfEveryChannel_IsToTensorAndNormalize) {
  const at::Tensor pixels = MakePixels(2, 3, 8);
  ASSERT_OK_AND_ASSIGN(const at::Tensor floats, NormalizePixels(pixels, kMean, kStd));
  ASSERT_EQ(floats.sizes(), pixels.sizes());
  EXPECT_TRUE(floats.is_contiguous(at::MemoryFormat::ChannelsLast));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = 0; y < 8; ++y) {
        for (int64_t x = 0; x < 64; ++x) {
          ASSERT_EQ(floats[b][c][y][x].item<float>(), Expected(pixels, b, c, y, x));
        }
      }
    }
  }
}

TEST(NormalizePixels, OneValue_StandsForAllChannels) {
  const at::Tensor pixels = MakePixels(1, 3, 4);
  ASSERT_OK_AND_ASSIGN(const at::Tensor one, NormalizePixels(pixels, {0.5}, {0.25}));
  ASSERT_OK_AND_ASSIGN(const at::Tensor three, NormalizePixels(pixels, {0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}));
  EXPECT_TRUE(at::equal(one, three));
}

TEST(NormalizePixels, PixelsOfOtherLayout_GiveTheSameValues) {
  const at::Tensor pixels = MakePixels(2, 3, 5);
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, NormalizePixels(pixels, kMean, kStd));
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, NormalizePixels(pixels.contiguous(), kMean, kStd));
  EXPECT_TRUE(at::equal(actual, expected));
}

TEST(NormalizePixels, HalfPrecision_IsTheFloatRounded) {
  const at::Tensor pixels = MakePixels(1, 3, 4);
  ASSERT_OK_AND_ASSIGN(const at::Tensor floats, NormalizePixels(pixels, kMean, kStd));
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor rounded, NormalizePixels(pixels, kMean, kStd, type));
    EXPECT_TRUE(at::equal(rounded, floats.to(type)));
    EXPECT_TRUE(rounded.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

// Enough pixels for several threads.
TEST(NormalizePixels, DeviceWithoutAKernel_HasTheHostsBitsWithoutTransfers) {
  StandinDevice::Install();
  for (const int64_t channels : {1, 3}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor pixels = MakePixels(3, channels, 256);
      const std::vector<double> mean(kMean.begin(), kMean.begin() + channels);
      const std::vector<double> std(kStd.begin(), kStd.begin() + channels);
      ASSERT_OK_AND_ASSIGN(const at::Tensor expected, NormalizePixels(pixels, mean, std, type));
      const at::Tensor on_device = pixels.to(StandinDevice::device());
      const TransferLog log;
      ASSERT_OK_AND_ASSIGN(const at::Tensor actual, NormalizePixels(on_device, mean, std, type));
      EXPECT_THAT(log.reads(), IsEmpty());
      EXPECT_THAT(log.uploads(), IsEmpty());
      EXPECT_TRUE(actual.is_contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(at::equal(actual.cpu(), expected));
    }
  }
}

TEST(NormalizePixels, WhatIsNoBatchOfPixels_IsRefusedWithItsShape) {
  EXPECT_THAT(NormalizePixels(at::zeros({2, 3, 4, 4}), kMean, kStd),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Float [2, 3, 4, 4]")));
  EXPECT_THAT(NormalizePixels(at::empty({2, 2, 4, 4}, at::kByte), kMean, kStd),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Byte [2, 2, 4, 4]")));
}

TEST(NormalizePixels, OtherNumbersOfValues_AreRefused) {
  EXPECT_THAT(NormalizePixels(at::empty({2, 1, 4, 4}, at::kByte), kMean, kStd),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mean has 3 values and std 3, expected 1")));
  EXPECT_THAT(NormalizePixels(at::empty({2, 3, 4, 4}, at::kByte), kMean, {1.0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mean has 3 values and std 1")));
}

TEST(NormalizePixels, OtherTypes_AreRefused) {
  EXPECT_THAT(NormalizePixels(MakePixels(1, 3, 1), kMean, kStd, at::kDouble),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Double")));
}

}  // namespace
}  // namespace ssl
