// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/color_planes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "ssl/data/image/pixel_avx512.h"
#include "ssl/data/image/vectorize.h"
#include "ssl/data/transforms/look_up_bytes.h"

namespace ssl {
namespace {

// Pixels that are moved between the layouts at once.
constexpr int kBlock = 16;
using Bytes [[gnu::vector_size(kBlock)]] = uint8_t;

SSL_PIXEL_FUNCTION Bytes Load(const uint8_t* bytes) {
  Bytes result;
  std::memcpy(&result, bytes, kBlock);
  return result;
}

SSL_PIXEL_FUNCTION void Store(const Bytes& value, uint8_t* bytes) { std::memcpy(bytes, &value, kBlock); }

// In a shuffle of two, the numbers of the second's bytes begin at 16.
SSL_PIXEL_FUNCTION void SplitBlock(const uint8_t* pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  const Bytes a = Load(pixels), b = Load(pixels + kBlock), c = Load(pixels + 2 * kBlock);
  Bytes r = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
  Bytes g = __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
  Bytes t = __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
  r = __builtin_shufflevector(r, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
  g = __builtin_shufflevector(g, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);
  t = __builtin_shufflevector(t, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
  Store(r, red);
  Store(g, green);
  Store(t, blue);
}

SSL_PIXEL_FUNCTION void JoinBlock(const uint8_t* red, const uint8_t* green, const uint8_t* blue, uint8_t* pixels) {
  const Bytes r = Load(red), g = Load(green), t = Load(blue);
  Bytes a = __builtin_shufflevector(r, g, 0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5);
  Bytes b = __builtin_shufflevector(r, g, 21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26);
  Bytes c = __builtin_shufflevector(r, g, 0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0);
  a = __builtin_shufflevector(a, t, 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15);
  b = __builtin_shufflevector(b, t, 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15);
  c = __builtin_shufflevector(c, t, 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31);
  Store(a, pixels);
  Store(b, pixels + kBlock);
  Store(c, pixels + 2 * kBlock);
}

SSL_PIXEL_FUNCTION int GreyOf(int red, int green, int blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

// Pillow computes in float32 and cuts the fraction off.
SSL_PIXEL_FUNCTION uint8_t Blend(int level, float factor, int value) {
  const float blended = static_cast<float>(level) + factor * static_cast<float>(value - level);
  return static_cast<uint8_t>(std::clamp(static_cast<int>(blended), 0, 255));
}

// A channel of the colour with value and saturation of 0 ... 255; distance: 0 ... 255, cut, of the hue from the part
// of the wheel where the channel is full.
SSL_PIXEL_FUNCTION uint8_t ChannelOf(int value, int saturation, int distance) {
  const int missing = value * saturation * std::clamp(distance, 0, 255);
  return static_cast<uint8_t>(
      static_cast<int>(static_cast<float>(value) - static_cast<float>(missing) * (1.0f / 65025.0f) + 0.5f));
}

// `number`, or 1 for 0. GCC would make a branch of std::max in a divisor, and not vectorise the loop around it.
SSL_PIXEL_FUNCTION int NotZero(int number) { return number + static_cast<int>(number == 0); }

}  // namespace

SSL_VECTORIZE
void ReadPlanes(const uint8_t* pixels, int count, ColorPlanes* planes) {
  planes->count = count;
  int i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    SplitBlock(pixels + 3 * i, planes->red + i, planes->green + i, planes->blue + i);
  }
  for (; i < count; ++i) {
    planes->red[i] = pixels[3 * i];
    planes->green[i] = pixels[3 * i + 1];
    planes->blue[i] = pixels[3 * i + 2];
  }
}

SSL_VECTORIZE
void WritePlanes(const ColorPlanes& planes, uint8_t* __restrict pixels) {
  const int count = planes.count;
  int i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    JoinBlock(planes.red + i, planes.green + i, planes.blue + i, pixels + 3 * i);
  }
  for (; i < count; ++i) {
    pixels[3 * i] = planes.red[i];
    pixels[3 * i + 1] = planes.green[i];
    pixels[3 * i + 2] = planes.blue[i];
  }
}

SSL_VECTORIZE
void ComputeBlends(int level, float factor, uint8_t* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = Blend(level, factor, values[i]);
}

// ComputeBlends of every value.
struct BlendTable {
  BlendTable(int level, float factor) {
    std::iota(results, results + kByteValues, uint8_t{0});
    ComputeBlends(level, factor, results, kByteValues);
  }
  uint8_t results[kByteValues];
};

void BlendWithLevel(int level, float factor, uint8_t* values, int64_t count) {
  if (!HasPixelAvx512() || count <= kByteValues) return ComputeBlends(level, factor, values, count);
  LookUpBytes(BlendTable(level, factor).results, values, count);
}

void BlendWithLevel(int level, float factor, ColorPlanes* planes) {
  const int count = planes->count;
  const bool looks_up = HasPixelAvx512() && 3 * count > kByteValues;
  if (!looks_up) {
    for (uint8_t* plane : {planes->red, planes->green, planes->blue}) ComputeBlends(level, factor, plane, count);
    return;
  }
  const BlendTable table(level, factor);
  for (uint8_t* plane : {planes->red, planes->green, planes->blue}) LookUpBytes(table.results, plane, count);
}

SSL_VECTORIZE
void BlendWithGrey(float factor, ColorPlanes* planes) {
  const int count = planes->count;
  for (int i = 0; i < count; ++i) {
    const int red = planes->red[i], green = planes->green[i], blue = planes->blue[i];
    const int grey = GreyOf(red, green, blue);
    planes->red[i] = Blend(grey, factor, red);
    planes->green[i] = Blend(grey, factor, green);
    planes->blue[i] = Blend(grey, factor, blue);
  }
}

// Pillow's conversion to HSV, where all three are cut to 8 bits, and back. This arithmetic, in float32 and without
// branches, was compared with Pillow's, in float64, on all 2^24 colours. A multiplication in place of a division would
// give other levels for a few of them.
SSL_VECTORIZE
void TurnHues(int steps, ColorPlanes* planes) {
  const int count = planes->count;
  for (int i = 0; i < count; ++i) {
    const int red = planes->red[i], green = planes->green[i], blue = planes->blue[i];
    const int value = std::max(red, std::max(green, blue));
    const int least = std::min(red, std::min(green, blue));
    const int middle = red + green + blue - value - least;
    const int chroma = value - least;
    // The wheel has six sectors; that of the strongest channel begins at `centre` - 1 and ends at `centre` + 1.
    const bool red_first = red == value, green_first = green == value;
    const int centre = red_first ? 0 : green_first ? 2 : 4;
    const int next = red_first ? green : green_first ? blue : red;
    const int previous = red_first ? blue : green_first ? red : green;
    const int sign = next >= previous ? -1 : 1;
    const int lap = centre - sign < 0 ? 1 : 0;
    const float from_edge = static_cast<float>(value - middle) / static_cast<float>(NotZero(chroma));
    const float turn =
        (static_cast<float>(centre - sign) + static_cast<float>(sign) * from_edge) / 6.0f + static_cast<float>(lap);
    // 255 to a sector.
    const int hue = ((static_cast<int>(turn * 255.0f) + steps) & 255) * 6;
    const int saturation = static_cast<int>(static_cast<float>(chroma * 255) / static_cast<float>(NotZero(value)));
    planes->red[i] = ChannelOf(value, saturation, 510 - std::abs(hue - 765));
    planes->green[i] = ChannelOf(value, saturation, std::abs(hue - 510) - 255);
    planes->blue[i] = ChannelOf(value, saturation, std::abs(hue - 1020) - 255);
  }
}

SSL_VECTORIZE
void WriteGreys(const ColorPlanes& planes, uint8_t* __restrict greys) {
  const int count = planes.count;
  for (int i = 0; i < count; ++i) {
    greys[i] = static_cast<uint8_t>(GreyOf(planes.red[i], planes.green[i], planes.blue[i]));
  }
}

SSL_VECTORIZE
uint32_t SumOfGreys(const ColorPlanes& planes) {
  uint32_t sum = 0;
  const int count = planes.count;
  for (int i = 0; i < count; ++i) {
    sum += static_cast<uint32_t>(GreyOf(planes.red[i], planes.green[i], planes.blue[i]));
  }
  return sum;
}

SSL_VECTORIZE
uint64_t SumOf(const uint8_t* values, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

}  // namespace ssl
