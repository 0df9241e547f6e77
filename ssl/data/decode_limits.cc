// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/decode_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ssl {

absl::Status CheckFileSize(int64_t bytes, const DecodeLimits& limits) {
  if (bytes <= limits.max_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("picture file has ", bytes, " bytes, expected at most ", limits.max_bytes));
}

absl::Status CheckPictureSize(int64_t height, int64_t width, const DecodeLimits& limits) {
  if (height < 1 || width < 1) {
    return absl::DataLossError(absl::StrCat("picture has ", height, " x ", width, " pixels, expected at least one"));
  }
  if (std::max(height, width) > limits.max_side) {
    return absl::ResourceExhaustedError(
        absl::StrCat("picture has ", height, " x ", width, " pixels, expected sides of at most ", limits.max_side));
  }
  if (height * width > limits.max_pixels) {
    return absl::ResourceExhaustedError(absl::StrCat("picture has ", height, " x ", width, " = ", height * width,
                                                     " pixels, expected at most ", limits.max_pixels));
  }
  return absl::OkStatus();
}

}  // namespace ssl
