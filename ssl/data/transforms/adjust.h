// SPDX-License-Identifier: Apache-2.0
//
// Colour arithmetic of Pillow and torchvision's PIL path on 8-bit images, in place. Equal to Pillow 13 in every
// pixel. Images have 1 channel (grey) or 3 (red, green, blue). Pure functions.
#ifndef SSL_DATA_TRANSFORMS_ADJUST_H_
#define SSL_DATA_TRANSFORMS_ADJUST_H_

#include "absl/types/span.h"
#include "ssl/data/image/image.h"

namespace ssl {

enum class ColorAdjustment { kBrightness, kContrast, kSaturation, kHue };

struct ColorStep {
  ColorAdjustment adjustment;
  double value;  // what the function below is given
};

// The number that the pixels of a step of brightness, contrast or saturation are multiplied by, and by how many of 255
// that are the wheel kHue turns.
float ColorFactor(const ColorStep& step);
int HueSteps(const ColorStep& step);

// Does the steps one after the other, rounding after each, but in as few passes over the image as they allow: one, or
// one more for each contrast.
void AdjustColors(absl::Span<const ColorStep> steps, Image* image);

// Every pixel becomes black + factor * (pixel - black), cut to 0 ... 255. factor >= 0.
void AdjustBrightness(double factor, Image* image);
// The same, from the mean of the image's grey values instead of black.
void AdjustContrast(double factor, Image* image);
// The same, from each pixel's own grey value. A grey image stays as it is.
void AdjustSaturation(double factor, Image* image);
// Turns the hue by a part of the colour wheel, in [-0.5, 0.5], by way of Pillow's 8-bit HSV: also 0 may change a
// pixel by a few levels. A grey image stays as it is.
void AdjustHue(double part, Image* image);

// The grey values of an image: ITU-R 601-2 luma in 16-bit fixed point. `grey`, another image, gets 1 channel.
void ConvertToGrey(const Image& source, Image* grey);

// The same in place, by way of `scratch`, another image. A batch repeats a grey image in all its channels, so one is
// enough from here on.
void ReduceToGrey(Image* scratch, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_ADJUST_H_
