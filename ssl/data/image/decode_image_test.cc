// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_image.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/testing/jpeg_encoder.h"
#include "ssl/data/testing/png_of_16_bits.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// The folder with image.json and the folder images.
constexpr char kFolder[] = "ssl/data/testdata/decode";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// A file of this package, whatever golden numbers are used.
std::string ReadBytes(const std::string& name) {
  return ReadFile(
      absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/", kFolder, "/", name));
}

std::string ReadGoldenFile(const golden::Case& golden_case) {
  return ReadFile(absl::StrCat(golden::Directory(kFolder), "/", golden_case.Text("file")));
}

bool IsJpeg(absl::string_view bytes) { return absl::StartsWith(bytes, "\xFF\xD8"); }

std::string FormatLimit(const golden::Case& golden_case) {
  const std::string bytes = ReadGoldenFile(golden_case);
  const bool is_known = IsJpeg(bytes) || absl::StartsWith(bytes, "\x89PNG") || absl::StartsWith(bytes, "RIFF");
  if (!is_known) return "neither JPEG, PNG nor WebP";
  return golden_case.Has("convert") && golden_case.Text("convert") != "RGB" ? "not converted to RGB" : "";
}

// Four bytes, most significant first.
std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

TEST(DecodeImageGolden, PixelsAreThoseOfPillow) {
  const auto compare = [](const golden::Case& golden_case) {
    const std::string bytes = ReadGoldenFile(golden_case);
    const Image expected = ToImage(golden_case.steps[0].Expected("image").tensor);
    Image image;

    ASSERT_OK(DecodeImage(bytes, DecodeLimits(), &image, Grey16::kClip));

    EXPECT_LE(LargestDifference(image, expected), IsJpeg(bytes) ? 2 : 0);
  };
  RunGolden("image", "decode", compare, &FormatLimit, kFolder);
}

TEST(DecodeImage, ReusedImage_KeepsItsMemory) {
  Image image;
  ASSERT_OK(DecodeImage(ReadBytes("images/rgb.png"), DecodeLimits(), &image));
  const uint8_t* pixels = image.pixels();
  for (const char* name : {"images/rgb_q90.jpg", "images/gray16.png", "images/cmyk.jpg", "images/rgb.png"}) {
    ASSERT_OK(DecodeImage(ReadBytes(name), DecodeLimits(), &image));
    EXPECT_EQ(image.pixels(), pixels) << name;
    EXPECT_EQ(image.channels(), 3);
  }
}

// A cut or a flipped bit is an error or another image; under asan this is a test of memory safety as well.
TEST(DecodeImage, CutFiles_AreErrors) {
  for (const char* name : {"images/rgb_q90.jpg", "images/progressive.jpg", "images/cmyk.jpg", "images/rgb.png",
                           "images/palette.png", "images/gray16.png"}) {
    SCOPED_TRACE(name);
    const std::string bytes = ReadBytes(name);
    Image image;
    for (size_t size = 9; size + 20 < bytes.size(); size += 7) {
      EXPECT_THAT(DecodeImage(absl::string_view(bytes).substr(0, size), DecodeLimits(), &image),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is damaged: ")))
          << "cut after " << size << " bytes";
    }
  }
}

TEST(DecodeImage, CutJpeg_SaysSo) {
  const std::string bytes = ReadBytes("images/rgb_q90.jpg");
  Image image;
  EXPECT_THAT(DecodeImage(absl::string_view(bytes).substr(0, bytes.size() / 2), DecodeLimits(), &image),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("JPEG is damaged: Premature end of input file")));
}

TEST(DecodeImage, FlippedBits_DoNotAbort) {
  int errors = 0;
  for (const char* name : {"images/rgb_q90.jpg", "images/progressive.jpg", "images/rgb.png", "images/palette.png"}) {
    const std::string bytes = ReadBytes(name);
    Image image;
    for (size_t i = 8; i < bytes.size(); i += 3) {
      std::string damaged = bytes;
      damaged[i] ^= static_cast<char>(1 << (i % 8));
      const absl::Status status = DecodeImage(damaged, DecodeLimits(), &image);
      if (!status.ok()) ++errors;
      EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kOk, absl::StatusCode::kDataLoss,
                                       absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnimplemented));
    }
  }
  EXPECT_GT(errors, 0);
}

TEST(DecodeImage, DamagedImage_PrintsNothing) {
  const std::string bytes = ReadBytes("images/rgb_q90.jpg");
  std::string damaged = bytes;
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 20; ++i) damaged[i] = 'x';
  Image image;
  ::testing::internal::CaptureStderr();
  DecodeImage(damaged, DecodeLimits(), &image).IgnoreError();
  DecodeImage(absl::string_view(bytes).substr(0, 200), DecodeLimits(), &image).IgnoreError();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(DecodeImage, OtherKinds_AreNamedByTheirFirstBytes) {
  Image image;
  EXPECT_THAT(DecodeImage("", DecodeLimits(), &image), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is empty")));
  EXPECT_THAT(DecodeImage("GIF89a__________", DecodeLimits(), &image),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("neither JPEG, PNG nor WebP"), HasSubstr("starts with 'GIF89a__'"))));
}

// All levels but 255 of 65536 were one, and those of no camera.
TEST(DecodeImage, ValuesOf16Bits_AreScaled) {
  const auto decoded = [](const std::vector<uint16_t>& pixel, Grey16 grey16) {
    Image image;
    EXPECT_OK(DecodeImage(PngOf16Bits(2, pixel), DecodeLimits(), &image, grey16));
    const uint8_t* const first = image.pixels();
    return std::vector<int>(first, first + 3);
  };
  using Pixel = std::vector<int>;
  for (const int value : {0, 255, 256, 4095, 32768, 65535}) {
    const auto grey = static_cast<uint16_t>(value);
    const int high = value >> 8, clipped = std::min(value, 255);
    EXPECT_EQ(decoded({grey}, Grey16::kScale), Pixel({high, high, high})) << value;
    EXPECT_EQ(decoded({grey}, Grey16::kClip), Pixel({clipped, clipped, clipped})) << value;
    // Of these Pillow keeps the high byte as well.
    for (const Grey16 grey16 : {Grey16::kScale, Grey16::kClip}) {
      EXPECT_EQ(decoded({grey, 700}, grey16), Pixel({high, high, high})) << value;
      EXPECT_EQ(decoded({grey, 512, 65535}, grey16), Pixel({high, 2, 255})) << value;
    }
  }
}

// To copy such a file again would be in vain.
TEST(DecodeImage, RareKindsOfJpeg_AreNotTakenForDamage) {
  const std::string jpeg = ReadBytes("images/rgb_q90.jpg");
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  std::string hierarchical = jpeg;
  hierarchical[frame + 1] = '\xC5';
  std::string deep = jpeg;
  constexpr size_t kPrecision = 4;  // bits of a value
  deep[frame + kPrecision] = 12;
  Image image;
  for (const std::string& rare : {hierarchical, deep}) {
    EXPECT_THAT(DecodeImage(rare, DecodeLimits(), &image),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("JPEG is of a rare kind: ")));
  }
}

TEST(DecodeImage, Limits_AreCheckedBeforeMemoryIsTaken) {
  Image image;
  DecodeLimits limits;
  limits.max_bytes = 100;
  EXPECT_THAT(DecodeImage(ReadBytes("images/gray.png"), limits, &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes, expected at most 100")));

  limits = DecodeLimits();
  limits.max_pixels = 1000;
  for (const char* name : {"images/rgb.png", "images/rgb_q90.jpg"}) {
    EXPECT_THAT(DecodeImage(ReadBytes(name), limits, &image),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("64 x 48 pixels (width x height), which are 3072, expected at most 1000")));
  }
  limits = DecodeLimits();
  limits.max_side = 50;
  EXPECT_THAT(DecodeImage(ReadBytes("images/rgb.png"), limits, &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("expected sides of at most 50")));
  EXPECT_EQ(image.size_bytes(), 0);
}

TEST(DecodeImage, ThinImage_IsRefused) {
  Image image;
  DecodeLimits limits;
  limits.max_proportion = 1;  // 64 x 48
  EXPECT_THAT(DecodeImage(ReadBytes("images/rgb.png"), limits, &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("expected one side below 1 times the other")));
}

TEST(DecodeImage, ScansOfAJpeg_AreLimited) {
  Image image;
  DecodeLimits limits;
  limits.max_scans = 3;
  EXPECT_THAT(DecodeImage(ReadBytes("images/progressive.jpg"), limits, &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("JPEG has more than 3 scans")));
  EXPECT_OK(DecodeImage(ReadBytes("images/rgb_q90.jpg"), limits, &image));
  limits = DecodeLimits();
  limits.max_scan_pixels = 0;
  EXPECT_OK(DecodeImage(ReadBytes("images/progressive.jpg"), limits, &image)) << "a few are always allowed";
}

// Of 2 million pixels in less than 4 kB, which Huffman codes cannot do.
TEST(DecodeImage, PlainJpegWithArithmeticCoding_IsRead) {
  const std::vector<uint8_t> plain(1200 * 1800, 77);
  JpegKind kind;
  kind.horizontal = kind.vertical = 1;
  kind.arithmetic = true;
  const std::string bytes = EncodeJpeg(plain.data(), 1200, 1800, 1, kind);
  ASSERT_LT(bytes.size(), 4000u);
  Image image;
  ASSERT_OK(DecodeImage(bytes, DecodeLimits(), &image));
  EXPECT_EQ(image.pixels()[3 * (1800 * 600 + 900)], 77);
}

// libpng has a limit of its own, which calls the file damaged.
TEST(DecodeImage, WidePng_IsTooLarge) {
  std::string bytes = ReadBytes("images/rgb.png");
  constexpr size_t kWidth = 16, kChecksum = 29;
  bytes.replace(kWidth, 4, BigEndian(1000001));
  bytes.replace(
      kChecksum, 4,
      BigEndian(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, kChecksum - 12))));
  Image image;
  EXPECT_THAT(DecodeImage(bytes, DecodeLimits(), &image),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000001 x 48 pixels (width x height)")));
}

TEST(DecodeImage, HeaderThatClaimsAHugeImage_TakesNoMemory) {
  std::string bytes = ReadBytes("images/rgb_q90.jpg");
  const size_t frame = bytes.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  bytes.replace(frame + 5, 4, BigEndian(0xFFF0FFF0));  // height and width
  Image image;
  EXPECT_THAT(DecodeImage(bytes, DecodeLimits(), &image),
              AnyOf(StatusIs(absl::StatusCode::kResourceExhausted), StatusIs(absl::StatusCode::kDataLoss)));
  EXPECT_EQ(image.size_bytes(), 0);
}

}  // namespace
}  // namespace ssl
