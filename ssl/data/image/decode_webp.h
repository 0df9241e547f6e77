// SPDX-License-Identifier: Apache-2.0
//
// WebP, lossy and lossless, to 8-bit RGB; for DecodeImage.
#ifndef SSL_DATA_IMAGE_DECODE_WEBP_H_
#define SSL_DATA_IMAGE_DECODE_WEBP_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/image.h"

namespace ssl {

// As DecodeImage. Alpha is dropped. Unimplemented: animations.
absl::Status DecodeWebp(absl::string_view bytes, const DecodeLimits& limits, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_WEBP_H_
