// SPDX-License-Identifier: Apache-2.0
//
// WebP and orientation, against images that Pillow 13 has written, decoded and turned.
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/exif_orientation.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string ReadBytes(const std::string& name) {
  return PosixFileSystem()
      .Read(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/ssl/data/testdata/webp/",
                         name))
      .value();
}

// Size and pixels of an encoded image, turned upright when asked.
std::string Decoded(const std::string& bytes, bool upright = false) {
  Image image;
  const absl::Status status = DecodeImage(bytes, DecodeLimits(), &image);
  EXPECT_OK(status);
  if (!status.ok()) return "";
  if (upright) {
    const Image decoded = std::exchange(image, Image());
    TurnUpright(ExifOrientation(bytes), decoded, &image);
  }
  return absl::StrCat(image.height(), " x ", image.width(), ": ") +
         std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

TEST(DecodeWebp, PixelsAreThoseOfPillow) {
  for (const char* name : {"lossy", "alpha"}) {
    EXPECT_EQ(Decoded(ReadBytes(absl::StrCat(name, ".webp"))), Decoded(ReadBytes(absl::StrCat(name, ".png")))) << name;
  }
  EXPECT_EQ(Decoded(ReadBytes("exif6.webp")), Decoded(ReadBytes("small.png"))) << "lossless";
  EXPECT_EQ(Decoded(ReadBytes("lossless.webp")).substr(0, 9), "48 x 64: ");
}

TEST(DecodeWebp, Limits_AreKept) {
  Image image;
  DecodeLimits pixels;
  pixels.max_pixels = 48 * 64 - 1;
  EXPECT_THAT(DecodeImage(ReadBytes("lossy.webp"), pixels, &image),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("64 x 48 pixels (width x height), which are 3072, expected at most 3071")));
  DecodeLimits bytes;
  bytes.max_bytes = 100;
  EXPECT_THAT(DecodeImage(ReadBytes("lossy.webp"), bytes, &image), StatusIs(absl::StatusCode::kResourceExhausted));
}

// A lossless header with the largest size; such files may be as short as this.
TEST(DecodeWebp, AClaimWithoutBytes_IsRefused) {
  std::string header = "VP8L";
  header += std::string("\x10\0\0\0\x2F", 5);
  const uint32_t side = 13000 - 1;
  const uint32_t bits = side | side << 14;
  for (int shift = 0; shift < 32; shift += 8) header.push_back(static_cast<char>(bits >> shift));
  header.resize(8 + 16);
  const std::string file = std::string("RIFF\x1C\0\0\0WEBP", 12) + header;
  Image image;
  EXPECT_THAT(DecodeImage(file, DecodeLimits(), &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("header claims 169000000 pixels")));
}

TEST(DecodeWebp, DamagedFiles_AreErrors) {
  const std::string whole = ReadBytes("lossy.webp");
  Image image;
  for (size_t size = 12; size < whole.size(); size += 7) {
    EXPECT_THAT(DecodeImage(whole.substr(0, size), DecodeLimits(), &image),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("WebP is damaged")))
        << size;
  }
  for (size_t at = 12; at < whole.size(); at += 5) {
    std::string changed = whole;
    changed[at] = static_cast<char>(~changed[at]);
    EXPECT_THAT(DecodeImage(changed, DecodeLimits(), &image).code(),
                AnyOf(absl::StatusCode::kOk, absl::StatusCode::kDataLoss, absl::StatusCode::kResourceExhausted,
                      absl::StatusCode::kUnimplemented))
        << at;
  }
  EXPECT_THAT(DecodeImage(ReadBytes("animation.webp"), DecodeLimits(), &image),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("animation")));
}

TEST(ExifOrientation, IsReadFromEachFormat) {
  for (const char* ending : {"jpg", "png", "webp"}) {
    EXPECT_EQ(ExifOrientation(ReadBytes(absl::StrCat("exif6.", ending))), 6) << ending;
  }
  EXPECT_EQ(ExifOrientation(ReadBytes("small.png")), 1);
  EXPECT_EQ(ExifOrientation(ReadBytes("lossy.webp")), 1);
  EXPECT_EQ(ExifOrientation(""), 1);
}

// The JPEG standard allows any number of bytes 0xFF before a mark (ITU-T T.81, B.1.1.2).
TEST(ExifOrientation, OfAJpegWithFillBytes_IsRead) {
  const std::string jpeg = ReadBytes("exif6.jpg");
  EXPECT_EQ(ExifOrientation(jpeg.substr(0, 2) + "\xFF\xFF\xFF" + jpeg.substr(2)), 6);
}

// As Pillow's exif_transpose: where EXIF lacks the tag. Chunks of a PNG have checksums, which nobody looks at here.
TEST(ExifOrientation, OfXmp_CountsWhereExifSaysNothing) {
  const auto jpeg = [](const std::string& xmp, const std::string& file) {
    const std::string data = std::string("http://ns.adobe.com/xap/1.0/\0", 29) + xmp;
    const size_t length = data.size() + 2;
    return file.substr(0, 2) + "\xFF\xE1" + static_cast<char>(length >> 8) + static_cast<char>(length) + data +
           file.substr(2);
  };
  const std::string plain = std::string("\xFF\xD8\xFF\xDA\0\x02", 6);
  EXPECT_EQ(ExifOrientation(jpeg("<x tiff:Orientation=\"6\">", plain)), 6);
  EXPECT_EQ(ExifOrientation(jpeg("<tiff:Orientation>8</tiff:Orientation>", plain)), 8);
  EXPECT_EQ(ExifOrientation(jpeg("tiff:Orientation=\"9\"", plain)), 1);
  EXPECT_EQ(ExifOrientation(jpeg("tiff:Orientation=6", plain)), 1);
  EXPECT_EQ(ExifOrientation(jpeg("tiff:Orientation=\"3\"", ReadBytes("exif6.jpg"))), 6) << "EXIF comes first";
  const std::string text = std::string("XML:com.adobe.xmp\0\0\0\0\0", 22) + "<tiff:Orientation>5<";
  const std::string chunk = std::string(3, '\0') + static_cast<char>(text.size()) + "iTXt" + text + "CRC.";
  EXPECT_EQ(ExifOrientation(ReadBytes("small.png").substr(0, 33) + chunk + ReadBytes("small.png").substr(33)), 5);
  const std::string other = std::string("RIFF\x28\0\0\0WEBPXMP \x18\0\0\0", 20) + "tiff:Orientation=\"7\" etc.";
  EXPECT_EQ(ExifOrientation(other), 7);
}

TEST(ExifOrientation, EachByteOfAFile_MayBeWrongOrMissing) {
  for (const char* ending : {"jpg", "png", "webp"}) {
    const std::string whole = ReadBytes(absl::StrCat("exif6.", ending));
    for (size_t at = 0; at < whole.size(); ++at) {
      const int cut = ExifOrientation(whole.substr(0, at));
      EXPECT_TRUE(cut == 1 || cut == 6) << ending << " " << at;
      for (const char value : {'\0', '\x7F', '\xFF'}) {
        std::string changed = whole;
        changed[at] = value;
        const int orientation = ExifOrientation(changed);
        EXPECT_TRUE(orientation >= 1 && orientation <= 8) << ending << " " << at;
      }
    }
  }
}

TEST(TurnUpright, IsPillowsExifTranspose) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image decoded, image;
    ASSERT_OK(DecodeImage(ReadBytes("small.png"), DecodeLimits(), &decoded));
    TurnUpright(orientation, decoded, &image);
    const std::string expected =
        Decoded(ReadBytes(orientation == 1 ? "small.png" : absl::StrCat("upright", orientation, ".png")));
    EXPECT_EQ(absl::StrCat(image.height(), " x ", image.width(), ": ") +
                  std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes()),
              expected)
        << orientation;
  }
  EXPECT_EQ(Decoded(ReadBytes("exif6.webp"), /*upright=*/true), Decoded(ReadBytes("upright6.png")));
}

}  // namespace
}  // namespace ssl
