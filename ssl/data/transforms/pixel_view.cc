// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/pixel_view.h"

#include <algorithm>

namespace ssl {

absl::Status CheckPixelsOpen(const View& view) {
  if (view.table == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("works on 8-bit pixels, but stands after ToTensor; expected before it");
}

absl::Status CheckNothingErased(const View& view) {
  if (view.erased.box.height == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("stands after RandomErasing, expected before it");
}

void ApplyFlip(View* view) {
  if (!view->flipped) return;
  view->flipped = false;
  const int width = view->image.width();
  const int channels = view->image.channels();
  uint8_t* row = view->image.MutablePixels();
  for (int y = 0; y < view->image.height(); ++y, row += width * channels) {
    for (int left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }
}

}  // namespace ssl
