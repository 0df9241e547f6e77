// SPDX-License-Identifier: Apache-2.0
//
// The kernel's floats are the CPU's, bit for bit.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/kernels/normalize_pixels.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

const std::vector<double> kMean = {0.485, 0.456, 0.406};
const std::vector<double> kStd = {0.229, 0.224, 0.225};

// Every value in every channel, channels-last: [batch, channels, height, 65].
at::Tensor MakePixels(int64_t batch, int64_t channels, int64_t height) {
  const at::Tensor values = at::arange(batch * channels * height * 65, at::kLong).mul(7).remainder(256);
  return values.to(at::kByte).view({batch, height, 65, channels}).permute({0, 3, 1, 2});
}

void ExpectTheHostsBits(const at::Tensor& pixels, const at::Tensor& on_gpu, at::ScalarType type) {
  const size_t channels = static_cast<size_t>(pixels.size(1));
  const std::vector<double> mean(kMean.begin(), kMean.begin() + channels), std(kStd.begin(), kStd.begin() + channels);
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, NormalizePixels(pixels, mean, std, type));
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, NormalizePixels(on_gpu, mean, std, type));
  EXPECT_TRUE(actual.is_cuda());
  EXPECT_TRUE(actual.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(actual.cpu(), expected)) << pixels.sizes() << " to " << type;
}

TEST(NormalizePixelsGpu, EveryType_HasTheHostsBits) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const int64_t channels : {1, 3}) {
      for (const int64_t height : {1, 3, 300}) {
        const at::Tensor pixels = MakePixels(3, channels, height);
        ExpectTheHostsBits(pixels, pixels.to(at::kCUDA), type);
      }
    }
  }
}

// The second sample begins at no multiple of four bytes.
TEST(NormalizePixelsGpu, PartOfABatch_HasTheHostsBits) {
  const at::Tensor pixels = MakePixels(3, 3, 7);
  ExpectTheHostsBits(pixels.narrow(0, 1, 1), pixels.to(at::kCUDA).narrow(0, 1, 1), at::kFloat);
}

}  // namespace
}  // namespace ssl
