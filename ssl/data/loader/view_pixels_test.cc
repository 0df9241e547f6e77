// SPDX-License-Identifier: Apache-2.0
//
// Views of many shapes: their pixels through the table are the floats that a batch of floats has.
#include "ssl/data/loader/view_pixels.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/loader/view_floats.h"

namespace ssl {
namespace {

constexpr int kGuard = 32;
constexpr uint8_t kUntouched = 77;

View MakeView(int height, int width, int channels, bool flipped, const PixelTable& table) {
  View view;
  uint8_t* const pixels = view.image.Allocate(height, width, channels);
  for (int64_t i = 0; i < view.image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(i * 37 + i / 251);
  view.flipped = flipped;
  view.table = &table;
  return view;
}

void ExpectTheFloats(const View& view, int channels) {
  SCOPED_TRACE(::testing::Message() << view.image.height() << " x " << view.image.width() << " x "
                                    << view.image.channels() << " to " << channels
                                    << (view.flipped ? ", mirrored" : ""));
  const auto size = static_cast<size_t>(view.image.height()) * view.image.width() * channels;
  std::vector<float> floats(size);
  WriteViewFloats(view, channels, floats.data());
  std::vector<uint8_t> pixels(size + kGuard, kUntouched);
  WriteViewPixels(view, channels, pixels.data());
  for (size_t i = 0; i < size; ++i) {
    ASSERT_EQ(view.table->values[pixels[i]][i % channels], floats[i]) << "value " << i;
  }
  EXPECT_TRUE(std::all_of(pixels.end() - kGuard, pixels.end(), [](uint8_t value) { return value == kUntouched; }));
}

// The last ones are wider than a piece.
TEST(ViewPixels, ThroughTheTable_AreTheFloats) {
  const PixelTable table = MakeNormalizeTable({0.4}, {0.3});
  const PixelTable of_channels = MakeNormalizeTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  const std::vector<std::pair<int, int>> shapes = {{1, 1},   {2, 5},   {3, 6},   {7, 17},
                                                   {96, 96}, {2, 512}, {2, 513}, {3, 1100}};
  for (const auto& [height, width] : shapes) {
    for (const bool flipped : {false, true}) {
      ExpectTheFloats(MakeView(height, width, 3, flipped, of_channels), 3);
      ExpectTheFloats(MakeView(height, width, 1, flipped, of_channels), 3);
      ExpectTheFloats(MakeView(height, width, 1, flipped, table), 1);
    }
  }
}

}  // namespace
}  // namespace ssl
