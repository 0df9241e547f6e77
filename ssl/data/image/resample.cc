// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ssl/data/image/resample_avx512.h"

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

Window WindowAt(double centre, double support, int in) {
  return {centre, std::max(static_cast<int>(centre - support + 0.5), 0),
          std::min(static_cast<int>(centre + support + 0.5), in)};
}

}  // namespace

bool Resampler::Axis::operator==(const Axis& other) const {
  return in == other.in && out == other.out && begin == other.begin && size == other.size &&
         reduction == other.reduction && interpolation == other.interpolation;
}

Resampler::Resampler() : filters_(kFilterSlots) {}

void Resampler::ComputeFilter(const Axis& axis, Filter* filter) {
  filter->axis = axis;
  const double scale = static_cast<double>(axis.size) / (axis.out * axis.reduction);
  // Reducing widens the kernel, so that every input pixel has its share and nothing aliases; enlarging interpolates.
  const double stretch = std::max(scale, 1.0);
  const double support = HalfWidth(axis.interpolation) * stretch;
  const auto window_at = [&](int x) {
    return WindowAt(static_cast<double>(axis.begin) / axis.reduction + (x + 0.5) * scale, support, axis.in);
  };
  filter->taps = 1;
  for (int x = 0; x < axis.out; ++x) filter->taps = std::max(filter->taps, window_at(x).size());
  shares_.resize(filter->taps);
  filter->first.resize(axis.out);
  filter->weights.assign(static_cast<size_t>(axis.out) * filter->taps, 0);
  for (int x = 0; x < axis.out; ++x) {
    const Window window = window_at(x);
    double total = 0.0;
    for (int i = 0; i < window.size(); ++i) {
      shares_[i] = WeightAt(axis.interpolation, (window.begin + i - window.centre + 0.5) * (1.0 / stretch));
      total += shares_[i];
    }
    // All positions get equally many taps, so that the loops over them have a fixed length: short windows at the end of
    // the image start earlier, with zero weights in front, and read nothing beyond it.
    filter->first[x] = std::min(window.begin, axis.in - filter->taps);
    int32_t* weights = &filter->weights[static_cast<size_t>(x) * filter->taps] + (window.begin - filter->first[x]);
    for (int i = 0; i < window.size(); ++i) weights[i] = ToFixedPoint(shares_[i] / total);
  }
}

// A random crop has another size each time, but small images have few sizes: a direct-mapped cache finds most filters
// without a search, and its size bounds the memory.
const Resampler::Filter& Resampler::FilterFor(const Axis& axis) {
  const unsigned slot = static_cast<unsigned>(axis.size) + 37u * static_cast<unsigned>(axis.out);
  Filter& filter = filters_[slot % kFilterSlots];
  if (!(filter.axis == axis)) ComputeFilter(axis, &filter);
  return filter;
}

void Resampler::ScaleWidth(PixelRows source, int height, const Axis& axis, int channels, uint8_t* result) {
  if (!axis.IsCopy()) {
    const FilterTaps filter = FilterFor(axis).Taps();
    if (!FilterWidthByAvx512(source, height, channels, filter, result)) {
      FilterWidth(source, height, channels, filter, &tile_, result);
    }
    return;
  }
  const int64_t row_size = static_cast<int64_t>(axis.out) * channels;
  for (int y = 0; y < height; ++y) std::memcpy(result + y * row_size, source.first + y * source.stride, row_size);
}

void Resampler::ScaleHeight(PixelRows source, int64_t row_size, const Axis& axis, uint8_t* result) {
  const FilterTaps filter = FilterFor(axis).Taps();
  if (!FilterHeightByAvx512(source, row_size, filter, result)) FilterHeight(source, row_size, filter, result);
}

void Resampler::CropAndResize(const Image& source, const CropBox& box, int height, int width, Image* result,
                              Interpolation interpolation) {
  const int channels = source.channels(), reduction = source.reduction();
  const CropBox read = ReducedBox(box, reduction);
  const Axis rows = {read.height, height, box.top % reduction, box.height, reduction, interpolation};
  const Axis columns = {read.width, width, box.left % reduction, box.width, reduction, interpolation};
  const int64_t source_stride = static_cast<int64_t>(source.width()) * channels;
  const PixelRows corner = {source.row(read.top) + static_cast<int64_t>(read.left) * channels, source_stride};
  uint8_t* output = result->Allocate(height, width, channels);
  const int64_t output_size = static_cast<int64_t>(width) * channels;
  if (rows.IsCopy()) {
    ScaleWidth(corner, height, columns, channels, output);
  } else if (columns.IsCopy()) {
    ScaleHeight(corner, output_size, rows, output);
  } else if (HeightFirst(read, height, width)) {
    const int64_t row_size = static_cast<int64_t>(read.width) * channels;
    rows_.resize(static_cast<size_t>(row_size * height));
    ScaleHeight(corner, row_size, rows, rows_.data());
    ScaleWidth({rows_.data(), row_size}, height, columns, channels, output);
  } else {
    rows_.resize(static_cast<size_t>(output_size * read.height));
    ScaleWidth(corner, read.height, columns, channels, rows_.data());
    ScaleHeight({rows_.data(), output_size}, output_size, rows, output);
  }
}

}  // namespace ssl
