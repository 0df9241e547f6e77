// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/decode_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// Width first, as everybody names sizes of images.
std::string SizeText(int64_t height, int64_t width) {
  return absl::StrCat("image has ", width, " x ", height, " pixels (width x height)");
}

// What any header may claim.
constexpr int64_t kSmallClaim = int64_t{1} << 20;

}  // namespace

absl::Status CheckFileSize(int64_t bytes, const DecodeLimits& limits) {
  if (bytes <= limits.max_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("image file has ", bytes, " bytes, expected at most ", limits.max_bytes));
}

absl::Status CheckImageSize(int64_t height, int64_t width, const DecodeLimits& limits) {
  if (height < 1 || width < 1) {
    return absl::DataLossError(absl::StrCat(SizeText(height, width), ", expected at least one"));
  }
  if (std::max(height, width) > limits.max_side) {
    return absl::ResourceExhaustedError(
        absl::StrCat(SizeText(height, width), ", expected sides of at most ", limits.max_side));
  }
  if (std::max(height, width) / std::min(height, width) >= limits.max_proportion) {
    return absl::ResourceExhaustedError(
        absl::StrCat(SizeText(height, width), ", expected one side below ", limits.max_proportion, " times the other"));
  }
  if (height * width > limits.max_pixels) {
    return absl::ResourceExhaustedError(absl::StrCat(SizeText(height, width), ", which are ", height * width,
                                                     ", expected at most ", limits.max_pixels));
  }
  return absl::OkStatus();
}

absl::Status CheckClaim(int64_t claimed, int64_t most_per_byte, int64_t bytes, absl::string_view unit) {
  if (claimed <= kSmallClaim || claimed / most_per_byte <= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("header claims ", claimed, " ", unit, ", but the file's ", bytes,
                                                   " bytes can hold at most ", bytes * most_per_byte));
}

}  // namespace ssl
