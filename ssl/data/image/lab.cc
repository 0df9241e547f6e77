// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/lab.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace ssl {
namespace {

// OpenCV's fixed point: weights have 12 fractional bits, linear light 3 more than 8 bits, roots 15.
constexpr int kWeightBits = 12;
constexpr int kLightScale = 255 * 8;
constexpr int kRootBits = 15;
constexpr int kRoots = 256 * 3 / 2 * 8;

struct LabTables {
  LabTables() {
    for (int level = 0; level < 256; ++level) {
      const double v = level / 255.0;
      light[level] = RoundedInt(kLightScale * (v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4)));
    }
    for (int i = 0; i < kRoots; ++i) {
      const double v = static_cast<double>(i) / kLightScale;
      root[i] = RoundedInt((1 << kRootBits) * (v < 0.008856 ? v * 7.787 + 4.0 / 29.0 : std::cbrt(v)));
    }
    // Of sRGB to XYZ, each row divided by the white's coordinate.
    constexpr double kXyz[3][3] = {
        {0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}};
    constexpr double kWhite[3] = {0.950456, 1.0, 1.088754};
    for (int row = 0; row < 3; ++row) {
      for (int c = 0; c < 3; ++c) weights[row][c] = RoundedInt((1 << kWeightBits) * kXyz[row][c] / kWhite[row]);
    }
  }

  static int RoundedInt(double value) { return static_cast<int>(std::lround(value)); }

  std::array<int, 256> light;    // of an sRGB value
  std::array<int, kRoots> root;  // the cube root, with CIE's straight piece near 0
  int weights[3][3];
};

const LabTables& Tables() {
  static const auto* const tables = new LabTables;
  return *tables;
}

// Half up.
int Descale(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }

uint8_t Level(int value) { return static_cast<uint8_t>(std::clamp(Descale(value, kRootBits), 0, 255)); }

void WriteLab(const LabTables& tables, const uint8_t (&rgb)[3], uint8_t* lab) {
  int root[3];
  for (int row = 0; row < 3; ++row) {
    int sum = 0;
    for (int c = 0; c < 3; ++c) sum += tables.weights[row][c] * tables.light[rgb[c]];
    root[row] = tables.root[Descale(sum, kWeightBits)];
  }
  constexpr int kLightnessScale = (116 * 255 + 50) / 100;
  constexpr int kLightnessShift = (16 * 255 * (1 << kRootBits) + 50) / 100;
  constexpr int kMiddle = 128 << kRootBits;
  lab[0] = Level(kLightnessScale * root[1] - kLightnessShift);
  lab[1] = Level(500 * (root[0] - root[1]) + kMiddle);
  lab[2] = Level(200 * (root[1] - root[2]) + kMiddle);
}

// The inverse of CIE's cube root with its straight piece.
double Cubed(double root) { return root > 6.0 / 29.0 ? root * root * root : (root - 4.0 / 29.0) / 7.787; }

uint8_t SrgbLevel(double light) {
  const double v = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1.0 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::clamp(std::lround(255.0 * v), 0L, 255L));
}

}  // namespace

void ConvertFromLab(const uint8_t* lab, int64_t pixels, uint8_t* rgb) {
  // Of XYZ, each divided by the white's coordinate, to linear sRGB.
  constexpr double kRgb[3][3] = {
      {3.079935, -1.537152, -0.542783}, {-0.921234, 1.875990, 0.045244}, {0.052890, -0.204041, 1.151152}};
  for (int64_t i = 0; i < pixels; ++i, lab += 3, rgb += 3) {
    const double y = (lab[0] * 100.0 / 255.0 + 16.0) / 116.0;
    const double white_xyz[3] = {Cubed(y + (lab[1] - 128) / 500.0), Cubed(y), Cubed(y - (lab[2] - 128) / 200.0)};
    for (int c = 0; c < 3; ++c) {
      double light = 0.0;
      for (int row = 0; row < 3; ++row) light += kRgb[c][row] * white_xyz[row];
      rgb[c] = SrgbLevel(light);  // of lab in the same place, all three are read by now
    }
  }
}

void ConvertToLab(const Image& source, Image* lab) {
  const LabTables& tables = Tables();
  const int channels = source.channels();
  uint8_t* output = lab->Allocate(source.height(), source.width(), 3);
  const uint8_t* pixel = source.pixels();
  for (int64_t i = 0; i < source.size_bytes(); i += channels, pixel += channels, output += 3) {
    const uint8_t rgb[3] = {pixel[0], pixel[1 % channels], pixel[2 % channels]};
    WriteLab(tables, rgb, output);
  }
}

}  // namespace ssl
