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

// A table as arithmetic, which processors do on many pixels at once. A division is a multiplication with the reciprocal
// in two floats: of 256 values, so that each could be compared with its division.
struct PixelFormula {
  // A number as the sum of two floats.
  struct Factor {
    float high = 1.0f;
    float low = 0.0f;

    // value times it, rounded once but for about 2^-48.
    float Times(float value) const { return __builtin_fmaf(value, high, value * low); }
  };

  Factor scale;
  float mean[4] = {};
  Factor inverse_std[4];

  float operator()(int pixel, int channel) const {
    return inverse_std[channel].Times(scale.Times(static_cast<float>(pixel)) - mean[channel]);
  }
};

struct PixelTable {
  // values[pixel][channel]; the fourth column only pads.
  float values[256][4];
  // 1: one rule for all channels (every column is equal). 3: a rule per channel.
  int channels = 1;
  bool normalized = false;
  PixelFloats floats = PixelFloats::kUnit;
  PixelFormula formula;
  bool has_formula = false;  // formula gives `values`, bit by bit
  // `values` are (pixel / 255 - mean) / std, in float32; one value each, or one for each channel. Empty: something
  // else.
  std::vector<double> mean;
  std::vector<double> std;
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
