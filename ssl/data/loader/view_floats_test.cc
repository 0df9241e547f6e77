// SPDX-License-Identifier: Apache-2.0
//
// Views of many shapes, drawn from a seed, against a loop over single values.
#include "ssl/data/loader/view_floats.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr float kUntouched = 77.0f;
constexpr int kGuard = 32;

int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(*random);
}

struct Shape {
  int height;
  int width;
};

// Everything that a view may be, in this shape; offset: of the output in floats, from an aligned place.
void CheckShape(std::mt19937_64* random, const Shape& shape, const PixelTable& table, int offset) {
  for (const int image_channels : {1, 3}) {
    for (const int channels : {1, 3}) {
      if (image_channels > channels || table.channels > channels) continue;
      View view;
      uint8_t* pixels = view.image.Allocate(shape.height, shape.width, image_channels);
      std::generate_n(pixels, view.image.size_bytes(), [&] { return static_cast<uint8_t>(Draw(random, 0, 255)); });
      view.flipped = Draw(random, 0, 1) == 1;
      view.table = &table;
      const int64_t size = static_cast<int64_t>(shape.height) * shape.width * channels;
      std::vector<float> output(offset + size + kGuard, kUntouched);
      WriteViewFloats(view, channels, output.data() + offset);
      SCOPED_TRACE(::testing::Message() << shape.height << " x " << shape.width << " x " << image_channels << " to "
                                        << channels << (view.flipped ? ", mirrored" : ""));
      for (int64_t i = 0; i < size; ++i) {
        const int64_t x = i / channels % shape.width;
        const int64_t column = view.flipped ? shape.width - 1 - x : x;
        const int c = static_cast<int>(i % channels);
        const uint8_t* row = view.image.row(static_cast<int>(i / channels / shape.width));
        const int pixel = row[column * image_channels + (image_channels == 3 ? c : 0)];
        ASSERT_EQ(output[offset + i], table.values[pixel][c]) << "value " << i;
      }
      EXPECT_TRUE(std::all_of(output.begin(), output.begin() + offset, [](float f) { return f == kUntouched; }));
      EXPECT_TRUE(std::all_of(output.end() - kGuard, output.end(), [](float f) { return f == kUntouched; }));
    }
  }
}

// Small ones, ones that are written past the caches, ones wider than a piece, and both.
TEST(ViewFloats, DrawnShapes_HoldEveryValueAtItsPlace) {
  std::mt19937_64 random(kSeed);
  const std::vector<PixelTable> tables = {MakeToTensorTable(), MakeRawTable(), MakeLabTable(),
                                          MakeNormalizeTable({0.3}, {0.4}),
                                          MakeNormalizeTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})};
  std::vector<Shape> shapes = {{1, 1}, {224, 224}, {96, 96}, {77, 75}, {3, 1100}, {40, 1025}, {20, 512}, {33, 516}};
  for (int i = 0; i < 40; ++i) shapes.push_back({Draw(&random, 1, 60), Draw(&random, 1, 60)});
  for (const Shape& shape : shapes) {
    for (const PixelTable& table : tables) CheckShape(&random, shape, table, Draw(&random, 0, 5));
    CheckShape(&random, shape, tables.back(), 0);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace ssl
