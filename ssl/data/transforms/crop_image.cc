// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/crop_image.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ssl {

void CropImage(const Image& source, const CropBox& box, Image* result) {
  const int channels = source.channels();
  uint8_t* row = result->Allocate(box.height, box.width, channels);
  const int64_t row_size = static_cast<int64_t>(box.width) * channels;
  // The columns of the box that lie in the image.
  const int begin = std::clamp(-box.left, 0, box.width);
  const int end = std::clamp(source.width() - box.left, begin, box.width);
  for (int y = box.top; y < box.top + box.height; ++y, row += row_size) {
    if (y < 0 || y >= source.height() || begin == end) {
      std::memset(row, 0, row_size);
      continue;
    }
    const uint8_t* first = source.row(y) + static_cast<int64_t>(box.left + begin) * channels;
    std::memset(row, 0, begin * channels);
    std::memcpy(row + begin * channels, first, (end - begin) * channels);
    std::memset(row + end * channels, 0, (box.width - end) * channels);
  }
}

}  // namespace ssl
