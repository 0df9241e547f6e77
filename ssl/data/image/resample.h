// SPDX-License-Identifier: Apache-2.0
//
// Crop and antialiased resize of 8-bit images, with Pillow's results (Image.crop, then Image.resize with BILINEAR or
// BICUBIC): a filter whose support grows with the reduction, in a horizontal and a vertical pass, each in fixed point
// with 22 fractional bits and rounded to 8 bits. Equal to Pillow 13 in every pixel (resample_test). Of a reduced image
// (Image::reduction) the box is cut out in fractions of its pixels, so that the result lies where that of the full
// image does.
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

// Which pass is done first is a part of the result: the vertical one, as in Pillow 13, where the height of `box`
// shrinks by much more than its width.
inline bool HeightFirst(const CropBox& box, int height, int width) {
  return height < box.height && box.height - height > 2 * (box.width - width);
}

class Resampler {
 public:
  Resampler();

  // Cuts `box` (not empty, inside `source`, in its full coordinates) out and scales it to height x width (both >= 1).
  // `result` becomes owned and must not be `source`. channels: any.
  void CropAndResize(const Image& source, const CropBox& box, int height, int width, Image* result,
                     Interpolation interpolation = Interpolation::kBilinear);

 private:
  // One direction of a call: `in` pixels, of which the part from begin / reduction on, size / reduction long, becomes
  // `out` pixels. Without reduction all of them do.
  struct Axis {
    int in = 0;
    int out = 0;
    int begin = 0;
    int size = 0;
    int reduction = 1;
    Interpolation interpolation = Interpolation::kBilinear;

    bool IsCopy() const { return begin == 0 && size == out * reduction; }
    bool operator==(const Axis& other) const;
  };
  // What FilterTaps says of it.
  struct Filter {
    Axis axis;
    int taps = 0;
    std::vector<int> first;
    std::vector<int32_t> weights;

    FilterTaps Taps() const { return {axis.in, axis.out, taps, first.data(), weights.data()}; }
  };

  // FilterWidth and FilterHeight.
  void ScaleWidth(PixelRows source, int height, const Axis& axis, int channels, uint8_t* result);
  void ScaleHeight(PixelRows source, int64_t row_size, const Axis& axis, uint8_t* result);
  void ComputeFilter(const Axis& axis, Filter* filter);
  const Filter& FilterFor(const Axis& axis);

  std::vector<Filter> filters_;  // direct-mapped cache by axis
  std::vector<uint8_t> rows_;    // result of the first pass
  std::vector<double> shares_;   // of the pixels in one window
  std::vector<uint8_t> tile_;    // for FilterWidth
};

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_RESAMPLE_H_
