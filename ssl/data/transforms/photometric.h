// SPDX-License-Identifier: Apache-2.0
//
// Pillow's ImageOps.solarize, posterize, invert, equalize and autocontrast and ImageEnhance.Sharpness on 8-bit images
// of any number of channels. Equal to Pillow 13 in every pixel. Pure functions.
#ifndef SSL_DATA_TRANSFORMS_PHOTOMETRIC_H_
#define SSL_DATA_TRANSFORMS_PHOTOMETRIC_H_

#include "ssl/data/image/image.h"

namespace ssl {

// Inverts the values that are at least `threshold`, in [0, 256].
void Solarize(int threshold, Image* image);
// Adds `added`, at least 0, to the values below 128; sums are cut to 255.
void SolarizeAdd(int added, Image* image);
void Invert(Image* image);
// Keeps the `bits` highest bits of each value, in [0, 8].
void Posterize(int bits, Image* image);
// Stretches each channel so that its smallest value becomes 0 and its largest 255; a channel of one value stays.
void AutoContrast(Image* image);
// Spreads the levels of each channel so that about equally many pixels have each; a channel of few pixels or of one
// value stays.
void Equalize(Image* image);
// Every pixel becomes smooth + factor * (pixel - smooth), smooth being the mean of its neighbourhood of 3 x 3 with
// weight 5 for the pixel itself. Pixels at the border stay. scratch: another image, overwritten.
void AdjustSharpness(double factor, Image* scratch, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_PHOTOMETRIC_H_
