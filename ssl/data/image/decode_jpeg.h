// SPDX-License-Identifier: Apache-2.0
//
// JPEG by libjpeg-turbo, in Pillow's settings: exact integer DCT, smooth upsampling. CMYK and YCCK are taken as
// inverted, as Adobe writes them, and converted by Pillow's formula. The rules are those of decode_image.h.
#ifndef SSL_DATA_IMAGE_DECODE_JPEG_H_
#define SSL_DATA_IMAGE_DECODE_JPEG_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/decode_mode.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/needed_region.h"

namespace ssl {

absl::Status DecodeJpeg(absl::string_view bytes, const DecodeLimits& limits, DecodeMode mode, NeededRegion needed,
                        Image* image);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_JPEG_H_
