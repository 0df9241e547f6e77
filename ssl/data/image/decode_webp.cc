// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_webp.h"

#include <webp/decode.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// A lossless file may pack a whole plain image into a few bytes. What photographs and drawings have is far below.
constexpr int64_t kMostPixelsPerByte = int64_t{1} << 16;

const char* Reason(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends before the image does";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "the decoder got no memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "an unknown feature is used";
    default:
      return "the data are no image";
  }
}

absl::Status DamagedError(VP8StatusCode code) {
  const std::string message = absl::StrCat("WebP is damaged: ", Reason(code));
  if (code == VP8_STATUS_OUT_OF_MEMORY) return absl::ResourceExhaustedError(message);
  return code == VP8_STATUS_UNSUPPORTED_FEATURE ? absl::UnimplementedError(message) : absl::DataLossError(message);
}

}  // namespace

absl::Status DecodeWebp(absl::string_view bytes, const DecodeLimits& limits, Image* image) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return absl::InternalError("libwebp has another version than its header");
  VP8StatusCode code = WebPGetFeatures(data, bytes.size(), &config.input);
  if (code != VP8_STATUS_OK) return DamagedError(code);
  if (config.input.has_animation != 0) return absl::UnimplementedError("WebP is an animation, expected one image");
  const int64_t height = config.input.height;
  const int64_t width = config.input.width;
  SSL_RETURN_IF_ERROR(CheckImageSize(height, width, limits));
  SSL_RETURN_IF_ERROR(CheckClaim(height * width, kMostPixelsPerByte, static_cast<int64_t>(bytes.size()), "pixels"));
  uint8_t* pixels = image->Allocate(config.input.height, config.input.width, 3);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels;
  config.output.u.RGBA.stride = static_cast<int>(3 * width);
  config.output.u.RGBA.size = static_cast<size_t>(image->size_bytes());
  code = WebPDecode(data, bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? absl::OkStatus() : DamagedError(code);
}

}  // namespace ssl
