// SPDX-License-Identifier: Apache-2.0
//
// How large a picture a decoder accepts, and the checks against it.
#ifndef SSL_DATA_DECODE_LIMITS_H_
#define SSL_DATA_DECODE_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace ssl {

struct DecodeLimits {
  int64_t max_bytes = int64_t{256} << 20;  // of the file
  int64_t max_pixels = 178956970;          // as Pillow, above which it speaks of a decompression bomb
  int64_t max_side = 65535;                // pixels
};

// ResourceExhausted, with what was found and what is allowed.
absl::Status CheckFileSize(int64_t bytes, const DecodeLimits& limits);
absl::Status CheckPictureSize(int64_t height, int64_t width, const DecodeLimits& limits);

}  // namespace ssl

#endif  // SSL_DATA_DECODE_LIMITS_H_
