// SPDX-License-Identifier: Apache-2.0
//
// What ToTensor and Normalize do to an 8-bit value, as a table: the float32 result for each of the 256 values, per
// output channel. Pixels stay 8-bit until they are written into the batch through this table.
// Immutable after construction, so it may be shared between threads.
#ifndef SSL_DATA_IMAGE_PIXEL_TABLE_H_
#define SSL_DATA_IMAGE_PIXEL_TABLE_H_

#include <vector>

namespace ssl {

struct PixelTable {
  // values[pixel][channel]; the fourth column only pads.
  float values[256][4];
  // 1: one rule for all channels (every column is equal). 3: a rule per channel.
  int channels = 1;
  bool normalized = false;
};

// pixel / 255, in float32 as torchvision's ToTensor.
PixelTable MakeToTensorTable();

// (pixel / 255 - mean) / std, in float32. mean and std: 1 or 3 values each, equally many; std > 0.
PixelTable MakeNormalizeTable(const std::vector<double>& mean, const std::vector<double>& std);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_PIXEL_TABLE_H_
