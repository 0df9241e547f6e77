// SPDX-License-Identifier: Apache-2.0
//
// From a pixel of 8 bits to what a model takes. Pure functions, for host and kernels.
#ifndef SSL_KERNELS_PIXEL_ARITHMETIC_H_
#define SSL_KERNELS_PIXEL_ARITHMETIC_H_

#include "ssl/kernels/host_device.h"

namespace ssl {

// (pixel / 255 - mean) / std, each step rounded to float32, as torchvision's ToTensor and Normalize: the values of
// MakeNormalizeTable (ssl/data/image/pixel_table.h). No multiplication here can be fused with the subtraction.
SSL_HOST_DEVICE float NormalizedPixel(int pixel, float mean, float std) {
  return (static_cast<float>(pixel) / 255.0f - mean) / std;
}

}  // namespace ssl

#endif  // SSL_KERNELS_PIXEL_ARITHMETIC_H_
