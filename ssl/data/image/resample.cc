// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

// Weights are fixed-point numbers with 22 bits behind the point, Pillow's choice (PRECISION_BITS in Resample.c): the
// weights of a pixel add up to 1, those of a cubic to at most 1.25 by absolute value, so that 8-bit pixels times
// weights add up to less than 2^31, whatever the number of taps. The half is added first: shifting then rounds. All of
// this is part of the result, pixel for pixel, and may not be "improved".
constexpr int kFractionBits = 32 - 8 - 2;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr int kFilterSlots = 512;

double Triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

double Cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * kA : 0.0;
}

// A weight function and where it ends.
struct Kernel {
  double (*weight)(double x);
  double half_width;
};

Kernel KernelOf(Interpolation interpolation) {
  return interpolation == Interpolation::kBilinear ? Kernel{Triangle, 1.0} : Kernel{Cubic, 2.0};
}

int32_t ToFixedPoint(double weight) {
  return static_cast<int32_t>(weight * (1 << kFractionBits) + (weight < 0.0 ? -0.5 : 0.5));
}

// The input pixels [begin, end) that an output pixel depends on, and its place among them.
struct Window {
  double centre;
  int begin;
  int end;
  int size() const { return end - begin; }
};

Window WindowAt(int x, double scale, double support, int in) {
  const double centre = (x + 0.5) * scale;
  return {centre, std::max(static_cast<int>(centre - support + 0.5), 0),
          std::min(static_cast<int>(centre + support + 0.5), in)};
}

uint8_t ToPixel(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255)); }

// One row of the horizontal pass, for a number of channels and taps that the compiler knows.
template <int kChannels, int kTaps>
void FilterRow(const uint8_t* input, int width, const int* first, const int32_t* weights, uint8_t* output) {
  for (int x = 0; x < width; ++x) {
    const uint8_t* pixel = input + first[x] * kChannels;
    for (int c = 0; c < kChannels; ++c) {
      int32_t sum = kHalf;
      for (int t = 0; t < kTaps; ++t) sum += pixel[t * kChannels + c] * weights[t];
      output[c] = ToPixel(sum);
    }
    output += kChannels;
    weights += kTaps;
  }
}

struct RowFilter {
  const int* first;
  const int32_t* weights;
  int taps;
};

void FilterRowAnyShape(const uint8_t* input, int width, int channels, const RowFilter& filter, uint8_t* output) {
  const int32_t* weights = filter.weights;
  for (int x = 0; x < width; ++x) {
    const uint8_t* pixel = input + filter.first[x] * channels;
    for (int c = 0; c < channels; ++c) {
      int32_t sum = kHalf;
      for (int t = 0; t < filter.taps; ++t) sum += pixel[t * channels + c] * weights[t];
      *output++ = ToPixel(sum);
    }
    weights += filter.taps;
  }
}

void FilterOneRow(const uint8_t* input, int width, int channels, const RowFilter& filter, uint8_t* output) {
  if (channels == 1 && filter.taps == 2) {
    FilterRow<1, 2>(input, width, filter.first, filter.weights, output);
  } else if (channels == 1 && filter.taps == 3) {
    FilterRow<1, 3>(input, width, filter.first, filter.weights, output);
  } else if (channels == 3 && filter.taps == 2) {
    FilterRow<3, 2>(input, width, filter.first, filter.weights, output);
  } else {
    FilterRowAnyShape(input, width, channels, filter, output);
  }
}

// One row of the vertical pass, `size` bytes: output[i] = sum over t of weights[t] * rows[t * stride + i].
SSL_VECTORIZE
void BlendRows(PixelRows rows, const int32_t* weights, int taps, int64_t size, int32_t* sums, uint8_t* output) {
  for (int64_t i = 0; i < size; ++i) sums[i] = kHalf + rows.first[i] * weights[0];
  for (int t = 1; t < taps; ++t) {
    const uint8_t* row = rows.first + t * rows.stride;
    const int32_t weight = weights[t];
    for (int64_t i = 0; i < size; ++i) sums[i] += row[i] * weight;
  }
  for (int64_t i = 0; i < size; ++i) output[i] = ToPixel(sums[i]);
}

}  // namespace

Resampler::Resampler() : filters_(kFilterSlots) {}

void Resampler::ComputeFilter(Interpolation interpolation, int in, int out, Filter* filter) {
  filter->interpolation = interpolation;
  filter->in = in;
  filter->out = out;
  const Kernel kernel = KernelOf(interpolation);
  const double scale = static_cast<double>(in) / out;
  // Reducing widens the kernel, so that every input pixel has its share and nothing aliases; enlarging interpolates.
  const double stretch = std::max(scale, 1.0);
  const double support = kernel.half_width * stretch;
  filter->taps = 1;
  for (int x = 0; x < out; ++x) filter->taps = std::max(filter->taps, WindowAt(x, scale, support, in).size());
  filter->first.resize(out);
  filter->weights.assign(static_cast<size_t>(out) * filter->taps, 0);
  for (int x = 0; x < out; ++x) {
    const Window window = WindowAt(x, scale, support, in);
    const auto weight_of = [&](int i) { return kernel.weight((i - window.centre + 0.5) * (1.0 / stretch)); };
    double total = 0.0;
    for (int i = window.begin; i < window.end; ++i) total += weight_of(i);
    // All positions get equally many taps, so that the loops over them have a fixed length: short windows at the end of
    // the image start earlier, with zero weights in front, and read nothing beyond it.
    filter->first[x] = std::min(window.begin, in - filter->taps);
    int32_t* weights = &filter->weights[static_cast<size_t>(x) * filter->taps];
    for (int i = window.begin; i < window.end; ++i) weights[i - filter->first[x]] = ToFixedPoint(weight_of(i) / total);
  }
}

// A random crop has another size each time, but small images have few sizes: a direct-mapped cache finds most filters
// without a search, and its size bounds the memory.
const Resampler::Filter& Resampler::FilterFor(int in, int out) {
  const unsigned slot = static_cast<unsigned>(in) + 37u * static_cast<unsigned>(out);
  Filter& filter = filters_[slot % kFilterSlots];
  if (filter.in != in || filter.out != out || filter.interpolation != interpolation_) {
    ComputeFilter(interpolation_, in, out, &filter);
  }
  return filter;
}

void Resampler::FilterWidth(PixelRows source, int height, int in, int out, int channels, uint8_t* result) {
  const int64_t stride = static_cast<int64_t>(out) * channels;
  if (in == out) {
    for (int y = 0; y < height; ++y) std::memcpy(result + y * stride, source.first + y * source.stride, stride);
    return;
  }
  const Filter& filter = FilterFor(in, out);
  const RowFilter row_filter = {filter.first.data(), filter.weights.data(), filter.taps};
  for (int y = 0; y < height; ++y) {
    FilterOneRow(source.first + y * source.stride, out, channels, row_filter, result + y * stride);
  }
}

void Resampler::FilterHeight(PixelRows source, int64_t row_size, int in, int out, uint8_t* result) {
  const Filter& filter = FilterFor(in, out);
  accumulator_.resize(static_cast<size_t>(row_size));
  for (int y = 0; y < out; ++y) {
    const PixelRows window = {source.first + filter.first[y] * source.stride, source.stride};
    BlendRows(window, &filter.weights[static_cast<size_t>(y) * filter.taps], filter.taps, row_size, accumulator_.data(),
              result + y * row_size);
  }
}

void Resampler::CropAndResize(const Image& source, const CropBox& box, int height, int width, Image* result,
                              Interpolation interpolation) {
  interpolation_ = interpolation;
  const int channels = source.channels();
  const int64_t source_stride = static_cast<int64_t>(source.width()) * channels;
  const PixelRows corner = {source.row(box.top) + static_cast<int64_t>(box.left) * channels, source_stride};
  uint8_t* output = result->Allocate(height, width, channels);
  const int64_t output_size = static_cast<int64_t>(width) * channels;
  if (box.height == height) {
    FilterWidth(corner, height, box.width, width, channels, output);
  } else if (box.width == width) {
    FilterHeight(corner, output_size, box.height, height, output);
  } else if (height < box.height && box.height - height > 2 * (box.width - width)) {
    // Pillow 13 takes the vertical pass first where the height shrinks by much more than the width.
    const int64_t row_size = static_cast<int64_t>(box.width) * channels;
    rows_.resize(static_cast<size_t>(row_size * height));
    FilterHeight(corner, row_size, box.height, height, rows_.data());
    FilterWidth({rows_.data(), row_size}, height, box.width, width, channels, output);
  } else {
    rows_.resize(static_cast<size_t>(output_size * box.height));
    FilterWidth(corner, box.height, box.width, width, channels, rows_.data());
    FilterHeight({rows_.data(), output_size}, output_size, box.height, height, output);
  }
}

}  // namespace ssl
