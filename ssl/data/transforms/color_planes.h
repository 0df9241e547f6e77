// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on a thousand colour pixels, a plane for each channel: there a loop over pixels needs no shuffling, and
// what several adjustments do in turn stays in the processor's first cache. Pure functions; the rules and results are
// those of adjust.h.
#ifndef SSL_DATA_TRANSFORMS_COLOR_PLANES_H_
#define SSL_DATA_TRANSFORMS_COLOR_PLANES_H_

#include <cstdint>

namespace ssl {

struct ColorPlanes {
  static constexpr int kPixels = 1024;

  int count = 0;  // of the pixels in use
  alignas(64) uint8_t red[kPixels];
  alignas(64) uint8_t green[kPixels];
  alignas(64) uint8_t blue[kPixels];
};

// Reads `count` pixels, 1 ... kPixels, of 3 channels each; writes all that are in use.
void ReadPlanes(const uint8_t* pixels, int count, ColorPlanes* planes);
void WritePlanes(const ColorPlanes& planes, uint8_t* pixels);

// Each value becomes level + factor * (value - level), in float32, cut to a whole number in 0 ... 255.
void BlendWithLevel(int level, float factor, uint8_t* values, int64_t count);
void BlendWithLevel(int level, float factor, ColorPlanes* planes);
// The same, with each pixel's own grey value as the level.
void BlendWithGrey(float factor, ColorPlanes* planes);
// steps: 256 are the whole wheel.
void TurnHues(int steps, ColorPlanes* planes);

// ITU-R 601-2 luma in 16-bit fixed point, and the sum of it over the pixels.
void WriteGreys(const ColorPlanes& planes, uint8_t* greys);
uint32_t SumOfGreys(const ColorPlanes& planes);
uint64_t SumOf(const uint8_t* values, int64_t count);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_COLOR_PLANES_H_
