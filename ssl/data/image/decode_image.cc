// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_image.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/decode_jpeg.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/decode_webp.h"

namespace ssl {
namespace {

constexpr absl::string_view kJpegMagic = "\xFF\xD8\xFF";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1A\n";

}  // namespace

absl::Status DecodeImage(absl::string_view bytes, const DecodeLimits& limits, Image* image, Grey16 grey16) {
  return DecodeImageRegion(bytes, limits, DecodeMode::kExact, WholeImage, image, grey16);
}

absl::Status DecodeImageRegion(absl::string_view bytes, const DecodeLimits& limits, DecodeMode mode,
                               NeededRegion needed, Image* image, Grey16 grey16) {
  if (bytes.empty()) return absl::DataLossError("image file is empty");
  SSL_RETURN_IF_ERROR(CheckFileSize(static_cast<int64_t>(bytes.size()), limits));
  if (absl::StartsWith(bytes, kJpegMagic)) return DecodeJpeg(bytes, limits, mode, needed, image);
  if (absl::StartsWith(bytes, kPngMagic)) return DecodePng(bytes, limits, image, grey16);
  if (absl::StartsWith(bytes, "RIFF") && bytes.substr(0, 12).substr(std::min<size_t>(bytes.size(), 8)) == "WEBP") {
    return DecodeWebp(bytes, limits, image);
  }
  return absl::UnimplementedError(
      absl::StrCat("image is neither JPEG, PNG nor WebP; it starts with '", absl::CHexEscape(bytes.substr(0, 8)), "'"));
}

}  // namespace ssl
