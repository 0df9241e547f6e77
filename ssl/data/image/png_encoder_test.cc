// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/png_encoder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/image.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Every pixel another colour, none of them smooth.
Image Pattern(int height, int width, int channels) {
  Image image;
  uint8_t* pixels = image.Allocate(height, width, channels);
  for (int64_t i = 0; i < image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + i / 5);
  return image;
}

TEST(PngEncoder, Colours_AreReadBackAsTheyWere) {
  for (const auto& [height, width] : {std::pair<int, int>{1, 1}, {3, 5}, {224, 224}, {5, 4000}}) {
    const Image image = Pattern(height, width, 3);
    ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodePng(image));
    EXPECT_THAT(bytes, StartsWith("\x89PNG"));
    Image decoded;
    ASSERT_OK(DecodePng(bytes, DecodeLimits(), &decoded));
    ASSERT_EQ(decoded.size_bytes(), image.size_bytes());
    EXPECT_EQ(decoded.height(), height);
    EXPECT_TRUE(std::equal(image.pixels(), image.pixels() + image.size_bytes(), decoded.pixels()));
  }
}

TEST(PngEncoder, Grey_IsStoredAsOneChannel) {
  const Image image = Pattern(9, 6, 1);
  ASSERT_OK_AND_ASSIGN(const std::string bytes, EncodePng(image));
  constexpr size_t kColourType = 25;  // in the header: 0 is grey
  EXPECT_EQ(bytes[kColourType], 0);
  Image decoded;
  ASSERT_OK(DecodePng(bytes, DecodeLimits(), &decoded));  // which makes RGB of it
  ASSERT_EQ(decoded.size_bytes(), 3 * image.size_bytes());
  for (int64_t i = 0; i < decoded.size_bytes(); ++i) EXPECT_EQ(decoded.pixels()[i], image.pixels()[i / 3]);
}

TEST(PngEncoder, BorrowedPixels_AreEncoded) {
  const std::vector<uint8_t> pixels = {0, 128, 255, 7};
  Image view;
  view.Borrow(pixels.data(), 2, 2, 1);
  Image owned;
  std::copy(pixels.begin(), pixels.end(), owned.Allocate(2, 2, 1));
  ASSERT_OK_AND_ASSIGN(const std::string of_view, EncodePng(view));
  ASSERT_OK_AND_ASSIGN(const std::string of_owned, EncodePng(owned));
  EXPECT_EQ(of_view, of_owned);
}

TEST(PngEncoder, OtherShapes_AreAnError) {
  EXPECT_THAT(EncodePng(Pattern(2, 3, 4)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("2 x 3"), HasSubstr("4 channels"))));
  EXPECT_THAT(EncodePng(Image()).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 x 0")));
}

}  // namespace
}  // namespace ssl
