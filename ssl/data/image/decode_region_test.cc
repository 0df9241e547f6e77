// SPDX-License-Identifier: Apache-2.0
//
// Regions of JPEGs of every kind, drawn from a seed, against the same pixels of the whole image.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/testing/jpeg_encoder.h"
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
  JpegKind jpeg;
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {{"grey", 1, {1, 1}}, {"cmyk", 4, {1, 1}}, {"cmyk 2x2", 4, {2, 2}}};
  for (const bool progressive : {false, true}) {
    for (const int restart_rows : {0, 1, 3}) {
      for (const auto& [horizontal, vertical] :
           std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}}) {
        kinds.push_back({"colour", 3, {horizontal, vertical, progressive, restart_rows}});
      }
    }
  }
  return kinds;
}

// Noise over slopes: every block differs, in all components.
std::string NoiseAsJpeg(std::mt19937_64* random, Kind kind, int height, int width) {
  kind.jpeg.quality = Draw(random, 30, 97);
  const size_t row_size = static_cast<size_t>(width) * kind.components;
  std::vector<uint8_t> pixels(height * row_size);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(3 * (i / row_size) + 2 * (i % row_size) + Draw(random, 0, 90));
  }
  return EncodeJpeg(pixels.data(), height, width, kind.components, kind.jpeg);
}

// What is decoded, and how.
struct Choice {
  DecodeMode mode = DecodeMode::kExact;
  int reduction = 1;
};

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

Image DecodeWhole(const std::string& jpeg, const Choice& choice) {
  Image image;
  const auto all = [&](int height, int width) { return NeededPixels{{0, 0, height, width}, choice.reduction}; };
  EXPECT_OK(DecodeImageRegion(jpeg, DecodeLimits(), choice.mode, all, &image));
  return image;
}

// box: in the coordinates of the full image.
void ExpectRegion(const std::string& jpeg, const Image& whole, const CropBox& box, const Choice& choice) {
  SCOPED_TRACE(::testing::Message() << "box " << box.top << " " << box.left << " " << box.height << " " << box.width);
  Image image;
  std::fill_n(image.Allocate(whole.full_height(), whole.full_width(), 3, choice.reduction), whole.size_bytes(),
              uint8_t{77});
  ASSERT_OK(DecodeImageRegion(
      jpeg, DecodeLimits(), choice.mode,
      [&](int height, int width) {
        EXPECT_EQ(height, whole.full_height());
        EXPECT_EQ(width, whole.full_width());
        return NeededPixels{box, choice.reduction};
      },
      &image));
  ASSERT_EQ(image.reduction(), choice.reduction);
  ASSERT_EQ(image.size_bytes(), whole.size_bytes());
  const CropBox read = ReducedBox(box, choice.reduction);
  for (int y = read.top; y < read.top + read.height; ++y) {
    ASSERT_TRUE(std::equal(image.row(y) + 3 * read.left, image.row(y) + 3 * (read.left + read.width),
                           whole.row(y) + 3 * read.left))
        << "row " << y;
  }
}

class DecodeRegion : public ::testing::TestWithParam<Choice> {};

TEST_P(DecodeRegion, OfEveryKindOfJpeg_HasThePixelsOfTheWholeImage) {
  std::mt19937_64 random(kSeed);
  for (const Kind& kind : Kinds()) {
    for (int i = 0; i < 12 && !HasFatalFailure(); ++i) {
      const int most = i % 3 == 0 ? 260 : 70;
      const int height = Draw(&random, 1, most), width = Draw(&random, 1, most);
      SCOPED_TRACE(::testing::Message() << kind.name << " " << kind.jpeg.horizontal << "x" << kind.jpeg.vertical
                                        << (kind.jpeg.progressive ? " progressive" : "") << " restart "
                                        << kind.jpeg.restart_rows << ", " << height << " x " << width);
      const std::string jpeg = NoiseAsJpeg(&random, kind, height, width);
      const Image whole = DecodeWhole(jpeg, GetParam());
      for (int box = 0; box < 25 && !HasFatalFailure(); ++box) {
        ExpectRegion(jpeg, whole, DrawBox(&random, height, width), GetParam());
      }
    }
  }
}

// Every single row and column, where blocks and their upsampled neighbours meet.
TEST_P(DecodeRegion, OfOneRowOrColumn_HasThePixelsOfTheWholeImage) {
  std::mt19937_64 random(kSeed);
  for (const Kind& kind : {Kind{"colour", 3, {2, 2}}, Kind{"colour", 3, {2, 1}}, Kind{"colour", 3, {2, 2, true}}}) {
    const std::string jpeg = NoiseAsJpeg(&random, kind, 67, 83);
    const Image whole = DecodeWhole(jpeg, GetParam());
    for (int y = 0; y < 67 && !HasFatalFailure(); ++y) ExpectRegion(jpeg, whole, {y, 20, 1, 30}, GetParam());
    for (int x = 0; x < 83 && !HasFatalFailure(); ++x) ExpectRegion(jpeg, whole, {20, x, 30, 1}, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Choices, DecodeRegion,
                         ::testing::Values(Choice{}, Choice{DecodeMode::kFast, 1}, Choice{DecodeMode::kFast, 2},
                                           Choice{DecodeMode::kFast, 4}, Choice{DecodeMode::kFast, 8}),
                         [](const auto& info) {
                           return info.param.mode == DecodeMode::kExact
                                      ? std::string("Exact")
                                      : "FastBy" + std::to_string(info.param.reduction);
                         });

TEST(DecodeExactly, IsNotReduced) {
  std::mt19937_64 random(kSeed);
  const std::string jpeg = NoiseAsJpeg(&random, {"colour", 3, {2, 2}}, 64, 64);
  EXPECT_EQ(DecodeWhole(jpeg, {DecodeMode::kExact, 8}).reduction(), 1);
}

// Otherwise an image would be broken in some epochs only.
TEST_P(DecodeRegion, CutOffBehindTheRegion_IsAnErrorAllTheSame) {
  std::mt19937_64 random(kSeed);
  const std::string jpeg = NoiseAsJpeg(&random, {"colour", 3, {2, 2}}, 100, 100);
  const auto top_row = [](int, int width) { return NeededPixels{{0, 0, 1, width}, GetParam().reduction}; };
  const auto code = [&](const std::string& bytes, NeededRegion needed) {
    Image image;
    return DecodeImageRegion(bytes, DecodeLimits(), GetParam().mode, needed, &image).code();
  };
  EXPECT_EQ(code(jpeg, top_row), absl::StatusCode::kOk);
  for (const size_t missing : {1u, 2u, 3u, 100u}) {
    const std::string cut = jpeg.substr(0, jpeg.size() - missing);
    Image image;
    EXPECT_EQ(code(cut, top_row), DecodeImage(cut, DecodeLimits(), &image).code()) << missing;
  }
  EXPECT_EQ(code(jpeg.substr(0, jpeg.size() - 100), top_row), absl::StatusCode::kDataLoss);
}

// Whether the region alone is computed: outside it stays what was there.
bool LeavesOutTheRest(const std::string& jpeg, int height, int width) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, 3);
  std::fill_n(pixels, image.size_bytes(), uint8_t{77});
  EXPECT_OK(DecodeImageRegion(
      jpeg, DecodeLimits(), DecodeMode::kExact,
      [](int, int width) {
        return NeededPixels{{0, 0, 1, width}};
      },
      &image));
  return std::all_of(image.row(height - 1), image.row(height - 1) + 3 * width, [](uint8_t v) { return v == 77; });
}

// A mark behind the region that the library refuses: an image would be broken by its crops otherwise, and with CACHE
// decoded in every epoch.
TEST_P(DecodeRegion, WrongMarksBehindTheRegion_AreAnErrorAllTheSame) {
  std::mt19937_64 random(kSeed);
  const std::string jpeg = NoiseAsJpeg(&random, {"colour", 3, {2, 2}}, 100, 100);
  const std::string scan = jpeg.substr(0, jpeg.size() - 2), end = "\xFF\xD9";
  for (const std::string& marks : {std::string("\xFF\xC5\0\x0B", 4), std::string("\xFF\xDB\0\x01", 4)}) {
    const std::string wrong = scan + marks + end;
    Image image;
    EXPECT_FALSE(DecodeImage(wrong, DecodeLimits(), &image).ok());
    EXPECT_FALSE(DecodeImageRegion(
                     wrong, DecodeLimits(), GetParam().mode,
                     [](int, int width) {
                       return NeededPixels{{0, 0, 1, width}, GetParam().reduction};
                     },
                     &image)
                     .ok());
  }
}

// Cameras append thumbnails and the like.
TEST(DecodeExactly, BytesBehindTheEnd_DoNotMakeTheRestNeeded) {
  std::mt19937_64 random(kSeed);
  for (const bool progressive : {false, true}) {
    for (const int restart_rows : {0, 1}) {
      const std::string jpeg = NoiseAsJpeg(&random, {"colour", 3, {2, 2, progressive, restart_rows}}, 100, 100);
      EXPECT_TRUE(LeavesOutTheRest(jpeg, 100, 100));
      EXPECT_TRUE(LeavesOutTheRest(jpeg + std::string(100, '\0'), 100, 100));
    }
  }
}

}  // namespace
}  // namespace ssl
