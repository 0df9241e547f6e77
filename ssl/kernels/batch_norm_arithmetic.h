// SPDX-License-Identifier: Apache-2.0
//
// What batch norm (arXiv 1502.03167, section 3) computes for each channel, from sums over its n values.
//
// Backward, solved for what one pass over the map can apply: with y = w h + bias and h = (x - mean) / sigma, and the
// gradient g of y,
//
//   dbias = sum g,  dw = sum g h = sum g (x - mean) / sigma,
//   dx = w / sigma (g - dbias / n - h dw / n)
//
// The mean and the sigma of the batch depend on x too: that is where the two subtracted terms come from. Written with
// x instead of h, dx = a g + b x + d where
//
//   a = w / sigma,  b = -a sum(g (x - mean)) / (n sigma^2),  d = -a dbias / n - b mean
//
// so that the pass needs three numbers per channel and no normalised copy of the map.
#ifndef SSL_KERNELS_BATCH_NORM_ARITHMETIC_H_
#define SSL_KERNELS_BATCH_NORM_ARITHMETIC_H_

#include <cmath>

#include "ssl/kernels/host_device.h"

namespace ssl {

// y = x * scale + offset.
struct ChannelNorm {
  float mean = 0.0f;
  float invstd = 0.0f;  // 1 / sigma
  float scale = 0.0f;
  float offset = 0.0f;
};

SSL_HOST_DEVICE ChannelNorm NormOf(double mean, double variance, double epsilon, float weight, float bias) {
  ChannelNorm norm;
  norm.mean = static_cast<float>(mean);
  norm.invstd = static_cast<float>(1.0 / sqrt(variance + epsilon));
  norm.scale = weight * norm.invstd;
  norm.offset = bias - norm.scale * norm.mean;
  return norm;
}

// The variance that running statistics have, as torch.nn.BatchNorm2d's.
SSL_HOST_DEVICE double UnbiasedVariance(double variance, double n) { return variance * n / fmax(1.0, n - 1.0); }

// A running statistic behind a batch that has `value`.
SSL_HOST_DEVICE float MovedStatistic(float running, double momentum, double value) {
  return static_cast<float>((1.0 - momentum) * running + momentum * value);
}

// Over values of a channel.
struct GradientSums {
  double g = 0.0;
  double products = 0.0;  // of g (x - mean)
};

struct ChannelGradient {
  float a = 0.0f;
  float b = 0.0f;
  float d = 0.0f;
  float weight = 0.0f;  // dw
  float bias = 0.0f;    // dbias
};

// all: of the n values that the statistics are of. own: of this rank's share of them, as the gradients of weight and
// bias are, like those of any other parameter.
SSL_HOST_DEVICE ChannelGradient GradientOf(const GradientSums& own, const GradientSums& all, double n, float weight,
                                           float mean, float invstd) {
  const double inverse = invstd;
  const double a = weight * inverse;
  const double b = -a * inverse * inverse * all.products / n;
  ChannelGradient gradient;
  gradient.a = static_cast<float>(a);
  gradient.b = static_cast<float>(b);
  gradient.d = static_cast<float>(-a * all.g / n - b * mean);
  gradient.weight = static_cast<float>(own.products * inverse);
  gradient.bias = static_cast<float>(own.g);
  return gradient;
}

}  // namespace ssl

#endif  // SSL_KERNELS_BATCH_NORM_ARITHMETIC_H_
