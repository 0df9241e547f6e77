// SPDX-License-Identifier: Apache-2.0
//
// Crop and antialiased resize of 8-bit images, with Pillow's results (Image.crop, then Image.resize with BILINEAR or
// BICUBIC): a filter whose support grows with the reduction, in a horizontal and a vertical pass, each in fixed point
// with 22 fractional bits and rounded to 8 bits. Equal to Pillow 13 in every pixel (resample_test).
//
// A Resampler keeps filter weights and buffers between calls; one object belongs to one thread.
#ifndef SSL_DATA_IMAGE_RESAMPLE_H_
#define SSL_DATA_IMAGE_RESAMPLE_H_

#include <cstdint>
#include <vector>

#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/resample_passes.h"

namespace ssl {

enum class Interpolation {
  kBilinear,  // a triangle of half-width 1
  kBicubic,   // Keys' cubic convolution with a = -0.5, of half-width 2
};

class Resampler {
 public:
  Resampler();

  // Cuts `box` (not empty, inside `source`) out and scales it to height x width (both >= 1). `result` becomes owned
  // and must not be `source`. channels: any.
  void CropAndResize(const Image& source, const CropBox& box, int height, int width, Image* result,
                     Interpolation interpolation = Interpolation::kBilinear);

 private:
  // What FilterTaps says of a reduction or enlargement from `in` to `out` pixels.
  struct Filter {
    Interpolation interpolation = Interpolation::kBilinear;
    int in = 0;
    int out = 0;
    int taps = 0;
    std::vector<int> first;
    std::vector<int32_t> weights;

    FilterTaps Taps() const { return {in, out, taps, first.data(), weights.data()}; }
  };

  // FilterWidth and FilterHeight, from `in` to `out` pixels or rows.
  void ScaleWidth(PixelRows source, int height, int in, int out, int channels, uint8_t* result);
  void ScaleHeight(PixelRows source, int64_t row_size, int in, int out, uint8_t* result);
  void ComputeFilter(Interpolation interpolation, int in, int out, Filter* filter);
  // With the interpolation of the present call.
  const Filter& FilterFor(int in, int out);

  Interpolation interpolation_ = Interpolation::kBilinear;  // of the present call
  std::vector<Filter> filters_;                             // direct-mapped cache by (interpolation, in, out)
  std::vector<uint8_t> rows_;                               // result of the first pass
  std::vector<double> shares_;                              // of the pixels in one window
  std::vector<uint8_t> tile_;                               // for FilterWidth
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_RESAMPLE_H_
