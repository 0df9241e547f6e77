// SPDX-License-Identifier: Apache-2.0
//
// A batch of 8-bit pixels that NormalizePixels turns into floats has the floats that the loader writes, bit for bit.
#include "ssl/kernels/normalize_pixels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/loader/view_floats.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int kSide = 48;

// Each of the 256 values in each channel.
View MakeView(int channels, const PixelTable& table) {
  View view;
  uint8_t* pixels = view.image.Allocate(kSide, kSide, channels);
  for (int64_t i = 0; i < view.image.size_bytes(); ++i)
    pixels[i] = static_cast<uint8_t>(i / channels * 5 + i % channels);
  view.table = &table;
  return view;
}

at::Tensor LoaderFloats(const View& view, int channels) {
  at::Tensor floats = at::empty({1, kSide, kSide, channels});
  WriteViewFloats(view, channels, floats.mutable_data_ptr<float>());
  return floats.permute({0, 3, 1, 2});
}

at::Tensor PixelsOf(const View& view, int channels) {
  at::Tensor pixels = at::empty({1, kSide, kSide, channels}, at::kByte);
  std::copy_n(view.image.pixels(), view.image.size_bytes(), pixels.mutable_data_ptr<uint8_t>());
  return pixels.permute({0, 3, 1, 2});
}

void ExpectTheLoadersFloats(int channels, const PixelTable& table, const std::vector<double>& mean,
                            const std::vector<double>& std) {
  const View view = MakeView(channels, table);
  ASSERT_OK_AND_ASSIGN(const at::Tensor actual, NormalizePixels(PixelsOf(view, channels), mean, std));
  EXPECT_TRUE(at::equal(actual, LoaderFloats(view, channels)));
}

TEST(NormalizePixels, NormalizedBatch_HasTheLoadersBits) {
  const std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
  ExpectTheLoadersFloats(3, MakeNormalizeTable(mean, std), mean, std);
  ExpectTheLoadersFloats(1, MakeNormalizeTable({0.2860}, {0.3530}), {0.2860}, {0.3530});
  ExpectTheLoadersFloats(3, MakeNormalizeTable({0.5}, {0.3}), {0.5}, {0.3});
}

TEST(NormalizePixels, MeanOfZeroAndStdOfOne_AreToTensorAlone) {
  for (const int channels : {1, 3}) ExpectTheLoadersFloats(channels, MakeToTensorTable(), {0.0}, {1.0});
}

}  // namespace
}  // namespace ssl
