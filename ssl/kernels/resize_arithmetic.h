// SPDX-License-Identifier: Apache-2.0
//
// The weights of an antialiased resize, for host and kernels: those of Resampler (ssl/data/image/resample.h), which are
// Pillow's, to the last bit.
#ifndef SSL_KERNELS_RESIZE_ARITHMETIC_H_
#define SSL_KERNELS_RESIZE_ARITHMETIC_H_

#include <cstdint>

#include "ssl/kernels/host_device.h"
#include "ssl/kernels/rounded.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

constexpr int kResizeWeightBits = 32 - 8 - 2;

// The input pixels [begin, end) that an output pixel depends on, and its place among them.
struct ResizeWindow {
  double centre;
  double narrowing;  // of the filter's argument, at most 1: reducing widens the filter
  int begin;
  int end;
};

SSL_HOST_DEVICE ResizeWindow ResizeWindowAt(const ResizeAxis& axis, bool bicubic, int position) {
  const double scale = static_cast<double>(axis.size) / (axis.out * axis.reduction);
  const double stretch = scale > 1.0 ? scale : 1.0;
  const double support = RoundedProduct(bicubic ? 2.0 : 1.0, stretch);
  const double centre = static_cast<double>(axis.begin) / axis.reduction + RoundedProduct(position + 0.5, scale);
  const int begin = static_cast<int>(centre - support + 0.5), end = static_cast<int>(centre + support + 0.5);
  return {centre, 1.0 / stretch, begin > 0 ? begin : 0, end < axis.in ? end : axis.in};
}

SSL_HOST_DEVICE double TriangleAt(double distance) { return distance < 1.0 ? 1.0 - distance : 0.0; }

// Keys' cubic convolution with a = -0.5.
SSL_HOST_DEVICE double CubicAt(double distance) {
  constexpr double kA = -0.5;
  const double x = distance;
  if (x < 1.0) {
    return RoundedProduct(RoundedProduct(RoundedProduct(kA + 2.0, x) - (kA + 3.0), x), x) + 1.0;
  }
  return x < 2.0 ? (RoundedProduct(RoundedProduct(x - 5.0, x) + 8.0, x) - 4.0) * kA : 0.0;
}

// The share of input pixel i in the window, before shares are made to sum to 1.
SSL_HOST_DEVICE double ResizeShare(const ResizeWindow& window, bool bicubic, int i) {
  const double x = RoundedProduct(i - window.centre + 0.5, window.narrowing);
  const double distance = x < 0.0 ? -x : x;
  return bicubic ? CubicAt(distance) : TriangleAt(distance);
}

SSL_HOST_DEVICE double SumOfShares(const ResizeWindow& window, bool bicubic) {
  double sum = 0.0;
  for (int i = window.begin; i < window.end; ++i) sum += ResizeShare(window, bicubic, i);
  return sum;
}

SSL_HOST_DEVICE int32_t ResizeWeight(double share) {
  return static_cast<int32_t>(RoundedProduct(share, static_cast<double>(1 << kResizeWeightBits)) +
                              (share < 0.0 ? -0.5 : 0.5));
}

}  // namespace ssl

#endif  // SSL_KERNELS_RESIZE_ARITHMETIC_H_
