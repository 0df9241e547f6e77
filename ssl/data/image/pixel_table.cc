// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/pixel_table.h"

#include <algorithm>
#include <cstddef>

namespace ssl {

PixelTable MakeToTensorTable() {
  PixelTable table;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel) / 255.0f;
  }
  return table;
}

PixelTable MakeRawTable() {
  PixelTable table;
  table.floats = PixelFloats::kRaw;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel);
  }
  return table;
}

PixelTable MakeLabTable() {
  PixelTable table;
  table.floats = PixelFloats::kLab;
  table.channels = 3;
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (float& value : table.values[pixel]) value = static_cast<float>(pixel) - 128.0f;
    table.values[pixel][0] = static_cast<float>(pixel) * static_cast<float>(100.0 / 255.0) - 50.0f;
  }
  return table;
}

PixelTable MakeFloatsTable(PixelFloats floats) {
  if (floats == PixelFloats::kRaw) return MakeRawTable();
  return floats == PixelFloats::kLab ? MakeLabTable() : MakeToTensorTable();
}

PixelTable MakeNormalizeTable(const std::vector<double>& mean, const std::vector<double>& std, PixelFloats floats) {
  PixelTable table = MakeFloatsTable(floats);
  table.channels = std::max(table.channels, static_cast<int>(mean.size()));
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
