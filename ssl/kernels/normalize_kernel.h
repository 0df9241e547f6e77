// SPDX-License-Identifier: Apache-2.0
//
// The kernel of normalize_pixels.h for NVIDIA GPUs.
#ifndef SSL_KERNELS_NORMALIZE_KERNEL_H_
#define SSL_KERNELS_NORMALIZE_KERNEL_H_

#include <cstdint>

struct CUstream_st;

namespace ssl {

enum class NormalizedType { kFloat, kHalf, kBFloat16 };

struct NormalizeLaunch {
  const uint8_t* pixels = nullptr;  // `values` of them on the current device, channels interleaved, at a multiple of 4
  void* result = nullptr;           // as many of `type`, at a multiple of 16 bytes
  NormalizedType type = NormalizedType::kFloat;
  int64_t values = 0;
  int channels = 3;
  float mean[3] = {};
  float std[3] = {};
};

// Starts it on the stream. Returns the cudaError_t of the launch, 0 when it is well.
int LaunchNormalize(const NormalizeLaunch& launch, CUstream_st* stream);

}  // namespace ssl

#endif  // SSL_KERNELS_NORMALIZE_KERNEL_H_
