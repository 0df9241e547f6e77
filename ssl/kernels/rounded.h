// SPDX-License-Identifier: Apache-2.0
//
// Products that are rounded before anything is added to them, for host and kernels: nvcc would fuse a multiplication
// and an addition, and results would differ from the host's.
#ifndef SSL_KERNELS_ROUNDED_H_
#define SSL_KERNELS_ROUNDED_H_

#include "ssl/kernels/host_device.h"

namespace ssl {

SSL_HOST_DEVICE float RoundedProduct(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

SSL_HOST_DEVICE double RoundedProduct(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

}  // namespace ssl

#endif  // SSL_KERNELS_ROUNDED_H_
