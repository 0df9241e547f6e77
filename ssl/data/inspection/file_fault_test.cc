// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/file_fault.h"

#include <string>

#include "gtest/gtest.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// What the decoder says of these bytes, classified.
FileFault FaultOf(const std::string& bytes, const DecodeLimits& limits = {}) {
  Image image;
  return ClassifyFileFault(bytes, DecodeImage(bytes, limits, &image));
}

std::string Png() {
  Image image;
  uint8_t* pixels = image.Allocate(16, 16, 3);
  for (int i = 0; i < 16 * 16 * 3; ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return EncodePng(image).value();
}

TEST(FileFault, Png_WholeCutOffAndChanged) {
  const std::string png = Png();
  EXPECT_EQ(FaultOf(png), FileFault::kNone);
  EXPECT_EQ(FaultOf(png.substr(0, png.size() / 2)), FileFault::kTruncated);
  EXPECT_EQ(FaultOf(png.substr(0, 20)), FileFault::kTruncated);
  std::string changed = png;
  changed[png.size() / 2] ^= 0x55;  // its checksum does not fit any more
  EXPECT_EQ(FaultOf(changed), FileFault::kDamaged);
}

TEST(FileFault, Jpeg_IsTruncatedWithoutItsEndMark) {
  const std::string begin("\xFF\xD8\xFF\xE0 no tables follow", 20);
  EXPECT_EQ(FaultOf(begin), FileFault::kTruncated);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9"), FileFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9" + std::string(9, '\0')), FileFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + std::string(9, '\0')), FileFault::kTruncated);
}

TEST(FileFault, OtherContents) {
  EXPECT_EQ(FaultOf(""), FileFault::kEmpty);
  EXPECT_EQ(FaultOf("<!DOCTYPE html><html>not found</html>"), FileFault::kNotAnImage);
  EXPECT_EQ(FaultOf("B"), FileFault::kNotAnImage);
  EXPECT_EQ(FaultOf("GIF89a and so on"), FileFault::kUnsupported);
  EXPECT_EQ(FaultOf("P6 4 4 255 pixels"), FileFault::kUnsupported);
  EXPECT_EQ(FaultOf(std::string("\0\0\0\x18"
                                "ftypheic",
                                12)),
            FileFault::kUnsupported);
}

TEST(FileFault, OverALimit_IsTooLarge) {
  DecodeLimits limits;
  limits.max_pixels = 100;
  EXPECT_EQ(FaultOf(Png(), limits), FileFault::kTooLarge);
}

TEST(FileFault, WhatTheFileSystemSays) {
  EXPECT_EQ(ClassifyFileFault("", absl::NotFoundError("x")), FileFault::kMissing);
  EXPECT_EQ(ClassifyFileFault("", absl::PermissionDeniedError("x")), FileFault::kUnreadable);
}

TEST(FileFault, Names_AreDistinct) {
  EXPECT_EQ(FileFaultName(FileFault::kNone), "none");
  EXPECT_EQ(FileFaultName(FileFault::kNotAnImage), "not an image");
  EXPECT_EQ(FileFaultName(FileFault::kTooLarge), "too large");
}

TEST(FileFault, WebpIsCutOffWhereItsLengthSaysSo) {
  const absl::Status damaged = absl::DataLossError("WebP is damaged");
  const std::string webp = std::string("RIFF\x0C\0\0\0WEBPVP8 1234", 20);
  EXPECT_EQ(ClassifyFileFault(webp, damaged), FileFault::kDamaged);
  EXPECT_EQ(ClassifyFileFault(webp.substr(0, 19), damaged), FileFault::kTruncated);
  EXPECT_EQ(ClassifyFileFault(webp, absl::UnimplementedError("an animation")), FileFault::kUnsupported);
}

}  // namespace
}  // namespace ssl
