// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/affine.h"

#include <algorithm>
#include <cmath>

namespace ssl {
namespace {

// Where a pixel comes from, and how far beyond the middle of pixel (row, column) that is.
struct SourcePoint {
  SourcePoint(double x, double y)
      : column(static_cast<int>(std::floor(x - 0.5))),
        row(static_cast<int>(std::floor(y - 0.5))),
        right(x - 0.5 - column),
        down(y - 0.5 - row) {}
  int column;
  int row;
  double right;
  double down;
};

// Beyond the border the image repeats it.
double LevelAt(const Image& image, int row, int column, int channel) {
  const int y = std::clamp(row, 0, image.height() - 1);
  const int x = std::clamp(column, 0, image.width() - 1);
  return image.row(y)[x * image.channels() + channel];
}

uint8_t Bilinear(const Image& image, const SourcePoint& point, int channel) {
  const auto line = [&](int row) {
    const double left = LevelAt(image, row, point.column, channel);
    return left + (LevelAt(image, row, point.column + 1, channel) - left) * point.right;
  };
  const double above = line(point.row);
  return static_cast<uint8_t>(above + (line(point.row + 1) - above) * point.down);
}

// Pillow's order of operations: another one differs in the last bit, which cutting to whole numbers shows.
double Cubic(const double (&v)[4], double t) {
  const double p2 = -v[0] + v[2];
  const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
  const double p4 = -v[0] + v[1] - v[2] + v[3];
  return v[1] + t * (p2 + t * (p3 + t * p4));
}

uint8_t Bicubic(const Image& image, const SourcePoint& point, int channel) {
  double rows[4];
  for (int y = 0; y < 4; ++y) {
    double levels[4];
    for (int x = 0; x < 4; ++x) levels[x] = LevelAt(image, point.row - 1 + y, point.column - 1 + x, channel);
    rows[y] = Cubic(levels, point.right);
  }
  return static_cast<uint8_t>(std::clamp(Cubic(rows, point.down), 0.0, 255.0));
}

void Interpolate(const Image& source, const AffineMap& map, AffineSampling sampling, uint8_t* output) {
  const int channels = source.channels();
  for (int row = 0; row < source.height(); ++row) {
    for (int column = 0; column < source.width(); ++column, output += channels) {
      const double x = map[0] * (column + 0.5) + map[1] * (row + 0.5) + map[2];
      const double y = map[3] * (column + 0.5) + map[4] * (row + 0.5) + map[5];
      if (x < 0.0 || x >= source.width() || y < 0.0 || y >= source.height()) continue;
      const SourcePoint point(x, y);
      for (int c = 0; c < channels; ++c) {
        output[c] = sampling == AffineSampling::kBilinear ? Bilinear(source, point, c) : Bicubic(source, point, c);
      }
    }
  }
}

void CopyPixel(const Image& source, int64_t row, int64_t column, uint8_t* output) {
  if (row < 0 || row >= source.height() || column < 0 || column >= source.width()) return;
  const uint8_t* pixel = source.row(static_cast<int>(row)) + column * source.channels();
  std::copy(pixel, pixel + source.channels(), output);
}

// Pillow walks in 16.16 fixed point; a scaling that keeps the axes, in floating point. Both add step to step.
void PickNearestFixed(const Image& source, const AffineMap& map, uint8_t* output) {
  const auto fixed = [](double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); };
  int64_t row_x = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5);
  int64_t row_y = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5);
  for (int row = 0; row < source.height(); ++row) {
    int64_t x = row_x;
    int64_t y = row_y;
    for (int column = 0; column < source.width(); ++column, output += source.channels()) {
      CopyPixel(source, y >> 16, x >> 16, output);
      x += fixed(map[0]);
      y += fixed(map[3]);
    }
    row_x += fixed(map[1]);
    row_y += fixed(map[4]);
  }
}

void PickNearestAlongAxes(const Image& source, const AffineMap& map, uint8_t* output) {
  double y = map[5] + map[4] * 0.5;
  for (int row = 0; row < source.height(); ++row, y += map[4]) {
    double x = map[2] + map[0] * 0.5;
    for (int column = 0; column < source.width(); ++column, x += map[0], output += source.channels()) {
      CopyPixel(source, static_cast<int64_t>(std::floor(y)), static_cast<int64_t>(std::floor(x)), output);
    }
  }
}

// By whole quarter turns, 1 ... 3, counter-clockwise; odd ones of squares only.
void TurnPixels(const Image& source, int quarters, uint8_t* output) {
  const int last_row = source.height() - 1;
  const int last_column = source.width() - 1;
  for (int row = 0; row <= last_row; ++row) {
    for (int column = 0; column <= last_column; ++column, output += source.channels()) {
      if (quarters == 1) CopyPixel(source, column, last_column - row, output);
      if (quarters == 2) CopyPixel(source, last_row - row, last_column - column, output);
      if (quarters == 3) CopyPixel(source, last_row - column, row, output);
    }
  }
}

// To 15 decimals, as Pillow does, so that a quarter turn has zeros. The product of a double would itself be rounded, to
// an eighth: at 45 degrees that decides.
double RoundedTo15(double value) {
  return static_cast<double>(std::nearbyint(static_cast<long double>(value) * 1e15L)) / 1e15;
}

}  // namespace

AffineMap RotationMap(int height, int width, double degrees) {
  const double angle = -(degrees * (3.14159265358979323846 / 180.0));
  const double cosine = RoundedTo15(std::cos(angle));
  const double sine = RoundedTo15(std::sin(angle));
  const double x = width / 2.0;
  const double y = height / 2.0;
  return {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y};
}

void TransformAffine(const Image& source, const AffineMap& map, AffineSampling sampling, uint8_t fill, Image* result) {
  uint8_t* output = result->Allocate(source.height(), source.width(), source.channels());
  std::fill(output, output + result->size_bytes(), fill);
  if (sampling != AffineSampling::kNearest) {
    Interpolate(source, map, sampling, output);
  } else if (map[1] == 0.0 && map[3] == 0.0) {
    PickNearestAlongAxes(source, map, output);
  } else {
    PickNearestFixed(source, map, output);
  }
}

void RotateImage(const Image& source, double degrees, AffineSampling sampling, uint8_t fill, Image* result) {
  double turn = std::fmod(degrees, 360.0);
  if (turn < 0.0) turn += 360.0;
  const bool keeps_shape = turn == 180.0 || source.height() == source.width();
  if (turn == 0.0) {
    result->CopyFrom(source);
  } else if (keeps_shape && std::fmod(turn, 90.0) == 0.0) {
    TurnPixels(source, static_cast<int>(turn / 90.0),
               result->Allocate(source.height(), source.width(), source.channels()));
  } else {
    TransformAffine(source, RotationMap(source.height(), source.width(), turn), sampling, fill, result);
  }
}

}  // namespace ssl
