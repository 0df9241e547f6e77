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

namespace ssl {

enum class Interpolation {
  kBilinear,  // a triangle of half-width 1
  kBicubic,   // Keys' cubic convolution with a = -0.5, of half-width 2
};

// Rows of bytes, `stride` bytes apart.
struct PixelRows {
  const uint8_t* first = nullptr;
  int64_t stride = 0;
};

class Resampler {
 public:
  Resampler();

  // Cuts `box` (not empty, inside `source`) out and scales it to height x width (both >= 1). `result` becomes owned
  // and must not be `source`. channels: any.
  void CropAndResize(const Image& source, const CropBox& box, int height, int width, Image* result,
                     Interpolation interpolation = Interpolation::kBilinear);

 private:
  // Weights of `taps` neighbours for each output position of a reduction or enlargement from `in` to `out` pixels.
  // Output x is the sum of weights[x * taps + t] * input[first[x] + t].
  struct Filter {
    Interpolation interpolation = Interpolation::kBilinear;
    int in = 0;
    int out = 0;
    int taps = 0;
    std::vector<int> first;
    std::vector<int32_t> weights;
  };

  // The horizontal pass over `height` rows of `in` pixels; result: rows of `out` pixels without gaps.
  void FilterWidth(PixelRows source, int height, int in, int out, int channels, uint8_t* result);
  // The vertical pass over `in` rows of row_size bytes; result: `out` rows without gaps.
  void FilterHeight(PixelRows source, int64_t row_size, int in, int out, uint8_t* result);
  static void ComputeFilter(Interpolation interpolation, int in, int out, Filter* filter);
  // With the interpolation of the present call.
  const Filter& FilterFor(int in, int out);

  Interpolation interpolation_ = Interpolation::kBilinear;  // of the present call
  std::vector<Filter> filters_;                             // direct-mapped cache by (interpolation, in, out)
  std::vector<uint8_t> rows_;                               // result of the first pass
  std::vector<int32_t> accumulator_;                        // one output row
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_RESAMPLE_H_
