// SPDX-License-Identifier: Apache-2.0
//
// Regions of JPEGs of every kind, drawn from a seed, against the same pixels of the whole image.
#include <algorithm>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE and size_t without including them
#include <cstdlib>
#include <random>
#include <string>
#include <vector>
// After <cstdio>.
#include <jpeglib.h>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20261123;

int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, std::max(least, most))(*random);
}

struct Kind {
  std::string name;
  int components;
  int horizontal;  // how many times as many columns and rows the first component has as the others
  int vertical;
  bool progressive = false;
  int restart_rows = 0;
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {{"grey", 1, 1, 1}, {"cmyk", 4, 1, 1}, {"cmyk 2x2", 4, 2, 2}};
  for (const bool progressive : {false, true}) {
    for (const int restart_rows : {0, 1, 3}) {
      for (const auto& [horizontal, vertical] :
           std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}}) {
        kinds.push_back({"colour", 3, horizontal, vertical, progressive, restart_rows});
      }
    }
  }
  return kinds;
}

// Noise over slopes: every block differs, in all components.
std::string EncodeJpeg(std::mt19937_64* random, const Kind& kind, int height, int width) {
  jpeg_compress_struct encoder = {};
  jpeg_error_mgr errors;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &bytes, &size);
  encoder.image_height = height;
  encoder.image_width = width;
  encoder.input_components = kind.components;
  encoder.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : kind.components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, Draw(random, 30, 97), TRUE);
  encoder.comp_info[0].h_samp_factor = kind.horizontal;
  encoder.comp_info[0].v_samp_factor = kind.vertical;
  encoder.restart_in_rows = kind.restart_rows;
  if (kind.progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(width) * kind.components);
  for (int y = 0; y < height; ++y) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint8_t>(3 * y + 2 * i + Draw(random, 0, 90));
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&encoder, &pointer, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string result(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return result;
}

CropBox DrawBox(std::mt19937_64* random, int height, int width) {
  CropBox box = {0, 0, Draw(random, 1, height), Draw(random, 1, width)};
  // Corners and edges are as likely as places within.
  box.top = Draw(random, 0, 2) == 0   ? height - box.height
            : Draw(random, 0, 2) == 0 ? 0
                                      : Draw(random, 0, height - box.height);
  box.left = Draw(random, 0, 2) == 0   ? width - box.width
             : Draw(random, 0, 2) == 0 ? 0
                                       : Draw(random, 0, width - box.width);
  return box;
}

void ExpectRegion(const std::string& jpeg, const Image& whole, const CropBox& box) {
  SCOPED_TRACE(::testing::Message() << "box " << box.top << " " << box.left << " " << box.height << " " << box.width);
  Image image;
  std::fill_n(image.Allocate(whole.height(), whole.width(), 3), whole.size_bytes(), uint8_t{77});
  ASSERT_OK(DecodeImageRegion(
      jpeg, DecodeLimits(),
      [&](int height, int width) {
        EXPECT_EQ(height, whole.height());
        EXPECT_EQ(width, whole.width());
        return box;
      },
      &image));
  for (int y = box.top; y < box.top + box.height; ++y) {
    ASSERT_TRUE(
        std::equal(image.row(y) + 3 * box.left, image.row(y) + 3 * (box.left + box.width), whole.row(y) + 3 * box.left))
        << "row " << y;
  }
}

TEST(DecodeRegion, OfEveryKindOfJpeg_HasThePixelsOfTheWholeImage) {
  std::mt19937_64 random(kSeed);
  for (const Kind& kind : Kinds()) {
    for (int i = 0; i < 12 && !HasFatalFailure(); ++i) {
      const int most = i % 3 == 0 ? 260 : 70;
      const int height = Draw(&random, 1, most), width = Draw(&random, 1, most);
      SCOPED_TRACE(::testing::Message() << kind.name << " " << kind.horizontal << "x" << kind.vertical
                                        << (kind.progressive ? " progressive" : "") << " restart " << kind.restart_rows
                                        << ", " << height << " x " << width);
      const std::string jpeg = EncodeJpeg(&random, kind, height, width);
      Image whole;
      ASSERT_OK(DecodeImage(jpeg, DecodeLimits(), &whole));
      for (int box = 0; box < 25 && !HasFatalFailure(); ++box) {
        ExpectRegion(jpeg, whole, DrawBox(&random, height, width));
      }
    }
  }
}

// Every single row and column, where blocks and their upsampled neighbours meet.
TEST(DecodeRegion, OfOneRowOrColumn_HasThePixelsOfTheWholeImage) {
  std::mt19937_64 random(kSeed);
  for (const Kind& kind : {Kind{"colour", 3, 2, 2}, Kind{"colour", 3, 2, 1}, Kind{"colour", 3, 2, 2, true}}) {
    const std::string jpeg = EncodeJpeg(&random, kind, 67, 83);
    Image whole;
    ASSERT_OK(DecodeImage(jpeg, DecodeLimits(), &whole));
    for (int y = 0; y < 67 && !HasFatalFailure(); ++y) ExpectRegion(jpeg, whole, {y, 20, 1, 30});
    for (int x = 0; x < 83 && !HasFatalFailure(); ++x) ExpectRegion(jpeg, whole, {20, x, 30, 1});
  }
}

// Otherwise an image would be broken in some epochs only.
TEST(DecodeRegion, CutOffBehindTheRegion_IsAnErrorAllTheSame) {
  std::mt19937_64 random(kSeed);
  const std::string jpeg = EncodeJpeg(&random, {"colour", 3, 2, 2}, 100, 100);
  const auto top_row = [](int, int width) { return CropBox{0, 0, 1, width}; };
  Image image;
  EXPECT_OK(DecodeImageRegion(jpeg, DecodeLimits(), top_row, &image));
  for (const size_t missing : {1u, 2u, 3u, 100u}) {
    const std::string cut = jpeg.substr(0, jpeg.size() - missing);
    EXPECT_EQ(DecodeImageRegion(cut, DecodeLimits(), top_row, &image).code(),
              DecodeImage(cut, DecodeLimits(), &image).code())
        << missing;
  }
  EXPECT_EQ(DecodeImageRegion(jpeg.substr(0, jpeg.size() - 100), DecodeLimits(), top_row, &image).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ssl
