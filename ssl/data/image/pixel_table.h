// SPDX-License-Identifier: Apache-2.0
//
// What ToTensor and Normalize do to an 8-bit value, as a table: the float32 result for each of the 256 values, per
// output channel. Pixels stay 8-bit until they are written into the batch through this table.
// Immutable after construction, so it may be shared between threads.
#ifndef SSL_DATA_IMAGE_PIXEL_TABLE_H_
#define SSL_DATA_IMAGE_PIXEL_TABLE_H_

#include <vector>

namespace ssl {

// What the floats of a table are before Normalize.
enum class PixelFloats {
  kUnit,  // 0 ... 1
  kRaw,   // 0 ... 255
  kLab,   // L* - 50, a*, b* (ssl/data/image/lab.h)
};
constexpr int kPixelFloats = 3;  // how many kinds there are

struct PixelTable {
  // values[pixel][channel]; the fourth column only pads.
  float values[256][4];
  // 1: one rule for all channels (every column is equal). 3: a rule per channel.
  int channels = 1;
  bool normalized = false;
  PixelFloats floats = PixelFloats::kUnit;
};

// pixel / 255, in float32 as torchvision's ToTensor.
PixelTable MakeToTensorTable();

// The pixel's own value, as VISSL's ImgPilToRawTensor.
PixelTable MakeRawTable();

// Of 8-bit L*a*b* (ssl/data/image/lab.h): L * 100 / 255 - 50, a - 128, b - 128.
PixelTable MakeLabTable();

// The table of that kind.
PixelTable MakeFloatsTable(PixelFloats floats);

// (float - mean) / std, in float32, of the floats of such a table. mean and std: 1 or 3 values each, equally many; std
// > 0.
PixelTable MakeNormalizeTable(const std::vector<double>& mean, const std::vector<double>& std,
                              PixelFloats floats = PixelFloats::kUnit);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_PIXEL_TABLE_H_
