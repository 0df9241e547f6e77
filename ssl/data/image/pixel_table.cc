// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/pixel_table.h"

#include <cstddef>

namespace ssl {

PixelTable MakeToTensorTable() {
  PixelTable table;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel) / 255.0f;
  }
  return table;
}

PixelTable MakeNormalizeTable(const std::vector<double>& mean, const std::vector<double>& std) {
  PixelTable table = MakeToTensorTable();
  table.channels = static_cast<int>(mean.size());
  table.normalized = true;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (size_t column = 0; column < 4; ++column) {
      // One rule stands for all channels.
      const size_t rule = column < mean.size() ? column : 0;
      float& value = table.values[pixel][column];
      value = (value - static_cast<float>(mean[rule])) / static_cast<float>(std[rule]);
    }
  }
  return table;
}

}  // namespace ssl
