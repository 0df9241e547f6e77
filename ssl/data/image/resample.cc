// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ssl {
namespace {

constexpr int kFilterSlots = 512;

double Triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

double Cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * kA : 0.0;
}

double HalfWidth(Interpolation interpolation) { return interpolation == Interpolation::kBilinear ? 1.0 : 2.0; }

double WeightAt(Interpolation interpolation, double x) {
  return interpolation == Interpolation::kBilinear ? Triangle(x) : Cubic(x);
}

int32_t ToFixedPoint(double weight) {
  return static_cast<int32_t>(weight * (1 << kWeightBits) + (weight < 0.0 ? -0.5 : 0.5));
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

}  // namespace

Resampler::Resampler() : filters_(kFilterSlots) {}

void Resampler::ComputeFilter(Interpolation interpolation, int in, int out, Filter* filter) {
  filter->interpolation = interpolation;
  filter->in = in;
  filter->out = out;
  const double scale = static_cast<double>(in) / out;
  // Reducing widens the kernel, so that every input pixel has its share and nothing aliases; enlarging interpolates.
  const double stretch = std::max(scale, 1.0);
  const double support = HalfWidth(interpolation) * stretch;
  filter->taps = 1;
  for (int x = 0; x < out; ++x) filter->taps = std::max(filter->taps, WindowAt(x, scale, support, in).size());
  shares_.resize(filter->taps);
  filter->first.resize(out);
  filter->weights.assign(static_cast<size_t>(out) * filter->taps, 0);
  for (int x = 0; x < out; ++x) {
    const Window window = WindowAt(x, scale, support, in);
    double total = 0.0;
    for (int i = 0; i < window.size(); ++i) {
      shares_[i] = WeightAt(interpolation, (window.begin + i - window.centre + 0.5) * (1.0 / stretch));
      total += shares_[i];
    }
    // All positions get equally many taps, so that the loops over them have a fixed length: short windows at the end of
    // the image start earlier, with zero weights in front, and read nothing beyond it.
    filter->first[x] = std::min(window.begin, in - filter->taps);
    int32_t* weights = &filter->weights[static_cast<size_t>(x) * filter->taps] + (window.begin - filter->first[x]);
    for (int i = 0; i < window.size(); ++i) weights[i] = ToFixedPoint(shares_[i] / total);
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

void Resampler::ScaleWidth(PixelRows source, int height, int in, int out, int channels, uint8_t* result) {
  if (in != out) return FilterWidth(source, height, channels, FilterFor(in, out).Taps(), &tile_, result);
  const int64_t row_size = static_cast<int64_t>(out) * channels;
  for (int y = 0; y < height; ++y) std::memcpy(result + y * row_size, source.first + y * source.stride, row_size);
}

void Resampler::ScaleHeight(PixelRows source, int64_t row_size, int in, int out, uint8_t* result) {
  FilterHeight(source, row_size, FilterFor(in, out).Taps(), result);
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
    ScaleWidth(corner, height, box.width, width, channels, output);
  } else if (box.width == width) {
    ScaleHeight(corner, output_size, box.height, height, output);
  } else if (height < box.height && box.height - height > 2 * (box.width - width)) {
    // Pillow 13 takes the vertical pass first where the height shrinks by much more than the width.
    const int64_t row_size = static_cast<int64_t>(box.width) * channels;
    rows_.resize(static_cast<size_t>(row_size * height));
    ScaleHeight(corner, row_size, box.height, height, rows_.data());
    ScaleWidth({rows_.data(), row_size}, height, box.width, width, channels, output);
  } else {
    rows_.resize(static_cast<size_t>(output_size * box.height));
    ScaleWidth(corner, box.height, box.width, width, channels, rows_.data());
    ScaleHeight({rows_.data(), output_size}, output_size, box.height, height, output);
  }
}

}  // namespace ssl
