// SPDX-License-Identifier: Apache-2.0
//
// How large an image a decoder accepts, and the checks against it.
#ifndef SSL_DATA_IMAGE_DECODE_LIMITS_H_
#define SSL_DATA_IMAGE_DECODE_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

struct DecodeLimits {
  int64_t max_bytes = int64_t{256} << 20;  // of the file
  int64_t max_pixels = 178956970;          // as Pillow, above which it speaks of a decompression bomb
  int64_t max_side = 65535;                // pixels
  // Of the longer side to the shorter. A Resize of the shorter side enlarges the other one as much: 1 x 65535 pixels
  // would become 224 x 14679840.
  int64_t max_proportion = 1000;
  // Passes over a progressive JPEG. Encoders make about ten; hundreds in a small file keep a decoder busy for minutes.
  int64_t max_scans = 100;
  // Pixels times scans, above which a JPEG gets 20 scans at most.
  int64_t max_scan_pixels = int64_t{1} << 30;
};

// ResourceExhausted, with what was found and what is allowed.
absl::Status CheckFileSize(int64_t bytes, const DecodeLimits& limits);
absl::Status CheckImageSize(int64_t height, int64_t width, const DecodeLimits& limits);

// ResourceExhausted when a file of `bytes` bytes cannot hold the `claimed` units that its header claims,
// `most_per_byte` being the most that its format can pack into a byte: before memory is taken for them. Small claims
// pass.
absl::Status CheckClaim(int64_t claimed, int64_t most_per_byte, int64_t bytes, absl::string_view unit);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_DECODE_LIMITS_H_
