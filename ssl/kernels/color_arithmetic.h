// SPDX-License-Identifier: Apache-2.0
//
// Steps on single pixels of three channels, for host and kernels, with the results of ssl/data/transforms/adjust.h and
// photometric.h, which are Pillow's. A grey image is one of three equal channels: all steps leave them equal, as on an
// image of one channel.
#ifndef SSL_KERNELS_COLOR_ARITHMETIC_H_
#define SSL_KERNELS_COLOR_ARITHMETIC_H_

#include <cstdint>

#include "ssl/kernels/host_device.h"
#include "ssl/kernels/rounded.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

struct PixelColor {
  int red;
  int green;
  int blue;
};

SSL_HOST_DEVICE int CutToByte(int value) { return value < 0 ? 0 : value > 255 ? 255 : value; }

// ITU-R 601-2 luma in 16-bit fixed point.
SSL_HOST_DEVICE int GreyLevel(const PixelColor& color) {
  return (color.red * 19595 + color.green * 38470 + color.blue * 7471 + 0x8000) >> 16;
}

// Pillow computes in float32 and cuts the fraction off.
SSL_HOST_DEVICE int BlendedLevel(int level, float factor, int value) {
  const float change = RoundedProduct(factor, static_cast<float>(value - level));
  return CutToByte(static_cast<int>(static_cast<float>(level) + change));
}

SSL_HOST_DEVICE PixelColor BlendedColor(int level, float factor, const PixelColor& color) {
  return {BlendedLevel(level, factor, color.red), BlendedLevel(level, factor, color.green),
          BlendedLevel(level, factor, color.blue)};
}

// A channel of the colour with this value and saturation; distance: of the hue from where the channel is full.
SSL_HOST_DEVICE int HueChannel(int value, int saturation, int distance) {
  const int missing = value * saturation * CutToByte(distance);
  return static_cast<int>(static_cast<float>(value) - RoundedProduct(static_cast<float>(missing), 1.0f / 65025.0f) +
                          0.5f);
}

SSL_HOST_DEVICE int Distance(int a, int b) { return a < b ? b - a : a - b; }

// By way of Pillow's 8-bit HSV; steps: of 255 that are the wheel. The wheel has six sectors; that of the strongest
// channel begins at `centre` - 1 and ends at `centre` + 1.
SSL_HOST_DEVICE PixelColor TurnedHue(int steps, const PixelColor& color) {
  const int larger = color.green > color.blue ? color.green : color.blue;
  const int smaller = color.green < color.blue ? color.green : color.blue;
  const int value = color.red > larger ? color.red : larger;
  const int least = color.red < smaller ? color.red : smaller;
  const int middle = color.red + color.green + color.blue - value - least;
  const int chroma = value - least;
  const bool red_first = color.red == value, green_first = color.green == value;
  const int centre = red_first ? 0 : green_first ? 2 : 4;
  const int next = red_first ? color.green : green_first ? color.blue : color.red;
  const int previous = red_first ? color.blue : green_first ? color.red : color.green;
  const int sign = next >= previous ? -1 : 1;
  const float lap = centre - sign < 0 ? 1.0f : 0.0f;
  const float from_edge = static_cast<float>(value - middle) / static_cast<float>(chroma == 0 ? 1 : chroma);
  const float turn = (static_cast<float>(centre - sign) + static_cast<float>(sign) * from_edge) / 6.0f + lap;
  // 255 to a sector.
  const int hue = ((static_cast<int>(turn * 255.0f) + steps) & 255) * 6;
  const int saturation =
      static_cast<int>(static_cast<float>(chroma * 255) / static_cast<float>(value == 0 ? 1 : value));
  return {HueChannel(value, saturation, 510 - Distance(hue, 765)),
          HueChannel(value, saturation, Distance(hue, 510) - 255),
          HueChannel(value, saturation, Distance(hue, 1020) - 255)};
}

SSL_HOST_DEVICE int SolarizedLevel(int threshold, int value) { return value < threshold ? value : 255 - value; }

// A step on one pixel: any but a blur. mean_grey: of the view before the step, which kContrast needs.
SSL_HOST_DEVICE PixelColor AppliedStep(const PixelStep& step, int mean_grey, const PixelColor& color) {
  switch (step.kind) {
    case PixelStepKind::kBrightness:
      return BlendedColor(0, step.factor, color);
    case PixelStepKind::kContrast:
      return BlendedColor(mean_grey, step.factor, color);
    case PixelStepKind::kSaturation:
      return BlendedColor(GreyLevel(color), step.factor, color);
    case PixelStepKind::kHue:
      return TurnedHue(step.amount, color);
    case PixelStepKind::kGrey:
      return {GreyLevel(color), GreyLevel(color), GreyLevel(color)};
    case PixelStepKind::kSolarize:
      return {SolarizedLevel(step.amount, color.red), SolarizedLevel(step.amount, color.green),
              SolarizedLevel(step.amount, color.blue)};
    case PixelStepKind::kBlur:
      break;
  }
  return color;
}

}  // namespace ssl

#endif  // SSL_KERNELS_COLOR_ARITHMETIC_H_
