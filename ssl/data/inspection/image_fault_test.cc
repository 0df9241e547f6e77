// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/image_fault.h"

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
ImageFault FaultOf(const std::string& bytes, const DecodeLimits& limits = {}) {
  Image image;
  return ClassifyImageFault(bytes, DecodeImage(bytes, limits, &image));
}

std::string Png() {
  Image image;
  uint8_t* pixels = image.Allocate(16, 16, 3);
  for (int i = 0; i < 16 * 16 * 3; ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return EncodePng(image).value();
}

TEST(ImageFault, Png_WholeCutOffAndChanged) {
  const std::string png = Png();
  EXPECT_EQ(FaultOf(png), ImageFault::kNone);
  EXPECT_EQ(FaultOf(png.substr(0, png.size() / 2)), ImageFault::kTruncated);
  EXPECT_EQ(FaultOf(png.substr(0, 20)), ImageFault::kTruncated);
  std::string changed = png;
  changed[png.size() / 2] ^= 0x55;  // its checksum does not fit any more
  EXPECT_EQ(FaultOf(changed), ImageFault::kDamaged);
}

TEST(ImageFault, Jpeg_IsTruncatedWithoutItsEndMark) {
  const std::string begin("\xFF\xD8\xFF\xE0 no tables follow", 20);
  EXPECT_EQ(FaultOf(begin), ImageFault::kTruncated);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9"), ImageFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9" + std::string(9, '\0')), ImageFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + std::string(9, '\0')), ImageFault::kTruncated);
}

TEST(ImageFault, OtherContents) {
  EXPECT_EQ(FaultOf(""), ImageFault::kEmpty);
  EXPECT_EQ(FaultOf("<!DOCTYPE html><html>not found</html>"), ImageFault::kNotAnImage);
  EXPECT_EQ(FaultOf("B"), ImageFault::kNotAnImage);
  EXPECT_EQ(FaultOf("GIF89a and so on"), ImageFault::kUnsupported);
  EXPECT_EQ(FaultOf("P6 4 4 255 pixels"), ImageFault::kUnsupported);
  EXPECT_EQ(FaultOf(std::string("\0\0\0\x18"
                                "ftypheic",
                                12)),
            ImageFault::kUnsupported);
}

TEST(ImageFault, OverALimit_IsTooLarge) {
  DecodeLimits limits;
  limits.max_pixels = 100;
  EXPECT_EQ(FaultOf(Png(), limits), ImageFault::kTooLarge);
}

TEST(ImageFault, WhatTheFileSystemSays) {
  EXPECT_EQ(ClassifyImageFault("", absl::NotFoundError("x")), ImageFault::kMissing);
  EXPECT_EQ(ClassifyImageFault("", absl::PermissionDeniedError("x")), ImageFault::kUnreadable);
}

TEST(ImageFault, Names_AreDistinct) {
  EXPECT_EQ(ImageFaultName(ImageFault::kNone), "none");
  EXPECT_EQ(ImageFaultName(ImageFault::kNotAnImage), "not an image");
  EXPECT_EQ(ImageFaultName(ImageFault::kTooLarge), "too large");
}

}  // namespace
}  // namespace ssl
