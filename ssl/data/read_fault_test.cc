// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/read_fault.h"

#include <cstddef>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// What the decoder says of these bytes, classified.
ReadFault FaultOf(const std::string& bytes, const DecodeLimits& limits = {}) {
  Image image;
  return ReadFaultOf(bytes, DecodeImage(bytes, limits, &image));
}

std::string Png() {
  Image image;
  uint8_t* pixels = image.Allocate(16, 16, 3);
  for (int i = 0; i < 16 * 16 * 3; ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return EncodePng(image).value();
}

TEST(ReadFault, Png_WholeCutOffAndChanged) {
  const std::string png = Png();
  EXPECT_EQ(FaultOf(png), ReadFault::kNone);
  EXPECT_EQ(FaultOf(png.substr(0, png.size() / 2)), ReadFault::kTruncated);
  EXPECT_EQ(FaultOf(png.substr(0, 20)), ReadFault::kTruncated);
  std::string changed = png;
  changed[png.size() / 2] ^= 0x55;  // its checksum does not fit any more
  EXPECT_EQ(FaultOf(changed), ReadFault::kDamaged);
}

TEST(ReadFault, Jpeg_IsTruncatedWithoutItsEndMark) {
  const std::string begin("\xFF\xD8\xFF\xE0 no tables follow", 20);
  EXPECT_EQ(FaultOf(begin), ReadFault::kTruncated);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9"), ReadFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + "\xFF\xD9" + std::string(9, '\0')), ReadFault::kDamaged);
  EXPECT_EQ(FaultOf(begin + std::string(9, '\0')), ReadFault::kTruncated);
}

TEST(ReadFault, OtherContents) {
  EXPECT_EQ(FaultOf(""), ReadFault::kEmpty);
  EXPECT_EQ(FaultOf("<!DOCTYPE html><html>not found</html>"), ReadFault::kNotAnImage);
  EXPECT_EQ(FaultOf("B"), ReadFault::kNotAnImage);
  EXPECT_EQ(FaultOf("GIF89a and so on"), ReadFault::kUnsupported);
  EXPECT_EQ(FaultOf("P6 4 4 255 pixels"), ReadFault::kUnsupported);
  EXPECT_EQ(FaultOf(std::string("\0\0\0\x18"
                                "ftypheic",
                                12)),
            ReadFault::kUnsupported);
}

TEST(ReadFault, OverALimit_IsTooLarge) {
  DecodeLimits limits;
  limits.max_pixels = 100;
  EXPECT_EQ(FaultOf(Png(), limits), ReadFault::kTooLarge);
}

TEST(ReadFault, WhatTheFileSystemSays) {
  EXPECT_EQ(ReadFaultOf("", absl::NotFoundError("x")), ReadFault::kMissing);
  EXPECT_EQ(ReadFaultOf("", absl::PermissionDeniedError("x")), ReadFault::kUnreadable);
}

TEST(ReadFault, ErrorsOfReading_AreNotTakenForThoseOfContent) {
  EXPECT_EQ(ReadFaultOf("", AsReadError(absl::DataLossError("shrank"))), ReadFault::kUnreadable);
  EXPECT_EQ(ReadFaultOf("", AsReadError(absl::UnimplementedError("x"))), ReadFault::kUnreadable);
  EXPECT_EQ(ReadFaultOf("", AsReadError(absl::NotFoundError("x"))), ReadFault::kMissing);
  EXPECT_EQ(ReadFaultOf("", AsReadError(absl::ResourceExhaustedError("x"))), ReadFault::kTooLarge);
}

TEST(ReadFault, Names_AreDistinct) {
  std::set<absl::string_view> names;
  std::set<ReadFault> kinds;
  for (const ReadFault fault : kKindsOfBroken) {
    names.insert(ReadFaultName(fault));
    kinds.insert(fault);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kNumReadFaults) - 1);
  EXPECT_EQ(names.size(), kinds.size());
  EXPECT_EQ(ReadFaultName(ReadFault::kNone), "none");
  EXPECT_EQ(ReadFaultName(ReadFault::kNotAnImage), "not an image");
  EXPECT_EQ(ReadFaultName(ReadFault::kTooLarge), "too large");
}

TEST(ReadFault, WebpIsCutOffWhereItsLengthSaysSo) {
  const absl::Status damaged = absl::DataLossError("WebP is damaged");
  const std::string webp = std::string("RIFF\x0C\0\0\0WEBPVP8 1234", 20);
  EXPECT_EQ(ReadFaultOf(webp, damaged), ReadFault::kDamaged);
  EXPECT_EQ(ReadFaultOf(webp.substr(0, 19), damaged), ReadFault::kTruncated);
  EXPECT_EQ(ReadFaultOf(webp, absl::UnimplementedError("an animation")), ReadFault::kUnsupported);
}

}  // namespace
}  // namespace ssl
