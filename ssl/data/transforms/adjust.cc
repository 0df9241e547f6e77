// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/adjust.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

// Beyond it a difference of one level fills the range, so that larger factors change nothing.
constexpr double kLargestFactor = 1e4;

SSL_PIXEL_FUNCTION int GreyOf(const uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

// Pillow computes in float32 and cuts the fraction off.
SSL_PIXEL_FUNCTION uint8_t Blend(int degenerate, float factor, int value) {
  const float blended = static_cast<float>(degenerate) + factor * static_cast<float>(value - degenerate);
  return static_cast<uint8_t>(std::clamp(static_cast<int>(blended), 0, 255));
}

SSL_VECTORIZE
void BlendWithLevel(int degenerate, float factor, uint8_t* pixels, int64_t size) {
  for (int64_t i = 0; i < size; ++i) pixels[i] = Blend(degenerate, factor, pixels[i]);
}

SSL_VECTORIZE
void BlendWithGrey(float factor, uint8_t* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* pixel = pixels + 3 * i;
    const int grey = GreyOf(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = Blend(grey, factor, pixel[c]);
  }
}

SSL_VECTORIZE
void WriteGrey(const uint8_t* pixels, int64_t count, uint8_t* grey) {
  for (int64_t i = 0; i < count; ++i) grey[i] = static_cast<uint8_t>(GreyOf(pixels + 3 * i));
}

// The sum of a row, whose length is below 2^16.
SSL_VECTORIZE
uint32_t SumOfGrey(const uint8_t* pixels, int width, int channels) {
  uint32_t sum = 0;
  if (channels == 1) {
    for (int x = 0; x < width; ++x) sum += pixels[x];
  } else {
    for (int x = 0; x < width; ++x) sum += static_cast<uint32_t>(GreyOf(pixels + 3 * x));
  }
  return sum;
}

int RoundedMeanGrey(const Image& image) {
  uint64_t sum = 0;
  for (int y = 0; y < image.height(); ++y) sum += SumOfGrey(image.row(y), image.width(), image.channels());
  const double count = static_cast<double>(image.height()) * image.width();
  return static_cast<int>(static_cast<double>(sum) / count + 0.5);
}

void BlendWith(int degenerate, double factor, Image* image) {
  BlendWithLevel(degenerate, static_cast<float>(std::min(factor, kLargestFactor)), image->MutablePixels(),
                 image->size_bytes());
}

int64_t PixelCount(const Image& image) { return static_cast<int64_t>(image.height()) * image.width(); }

// A channel of the colour with value and saturation of 0 ... 255; distance: 0 ... 255, cut, of the hue from the part
// of the wheel where the channel is full.
SSL_PIXEL_FUNCTION uint8_t ChannelOf(int value, int saturation, int distance) {
  const int missing = value * saturation * std::clamp(distance, 0, 255);
  return static_cast<uint8_t>(static_cast<int>(static_cast<float>(value) - missing * (1.0f / 65025.0f) + 0.5f));
}

// `number`, or 1 for 0. GCC would make a branch of std::max in a divisor, and not vectorise the loop around it.
SSL_PIXEL_FUNCTION int NotZero(int number) { return number + static_cast<int>(number == 0); }

// Pillow's conversion to HSV, where all three are cut to 8 bits, and back. This arithmetic, in float32 and without
// branches, was compared with Pillow's, in float64, on all 2^24 colours.
SSL_PIXEL_FUNCTION void TurnHue(int steps, uint8_t* pixel) {
  const int red = pixel[0], green = pixel[1], blue = pixel[2];
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
  pixel[0] = ChannelOf(value, saturation, 510 - std::abs(hue - 765));
  pixel[1] = ChannelOf(value, saturation, std::abs(hue - 510) - 255);
  pixel[2] = ChannelOf(value, saturation, std::abs(hue - 1020) - 255);
}

SSL_VECTORIZE
void TurnHues(int steps, uint8_t* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) TurnHue(steps, pixels + 3 * i);
}

}  // namespace

void AdjustBrightness(double factor, Image* image) { BlendWith(0, factor, image); }

void AdjustContrast(double factor, Image* image) { BlendWith(RoundedMeanGrey(*image), factor, image); }

void AdjustSaturation(double factor, Image* image) {
  if (image->channels() == 1) return;
  BlendWithGrey(static_cast<float>(std::min(factor, kLargestFactor)), image->MutablePixels(), PixelCount(*image));
}

void AdjustHue(double part, Image* image) {
  if (image->channels() == 1) return;
  TurnHues(static_cast<int>(part * 255), image->MutablePixels(), PixelCount(*image));
}

void ConvertToGrey(const Image& source, Image* grey) {
  if (source.channels() == 1) {
    grey->CopyFrom(source);
    return;
  }
  WriteGrey(source.pixels(), PixelCount(source), grey->Allocate(source.height(), source.width(), 1));
}

void ReduceToGrey(Image* scratch, Image* image) {
  if (image->channels() == 1) return;
  ConvertToGrey(*image, scratch);
  std::swap(*image, *scratch);
}

}  // namespace ssl
