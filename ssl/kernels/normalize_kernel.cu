// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/normalize_kernel.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "ssl/kernels/pixel_arithmetic.h"

namespace ssl {
namespace {

constexpr int kThreads = 256;
constexpr int kLevels = 256;
constexpr int kMostChannels = 3;
// So many blocks are enough for any GPU; each fills its table once for all of its pixels.
constexpr int64_t kMostBlocks = 1056;

__device__ void Convert(float value, float* result) { *result = value; }
__device__ void Convert(float value, __half* result) { *result = __float2half_rn(value); }
__device__ void Convert(float value, __nv_bfloat16* result) { *result = __float2bfloat16_rn(value); }

// What a thread reads and writes at once.
constexpr int kQuad = 4;
template <typename Float>
struct alignas(kQuad * sizeof(Float)) Quad {
  Float values[kQuad];
};

template <typename Float>
__global__ void __launch_bounds__(kThreads) NormalizeKernel(const __grid_constant__ NormalizeLaunch launch) {
  __shared__ float table[kMostChannels * kLevels];
  for (int i = threadIdx.x; i < launch.channels * kLevels; i += kThreads) {
    table[i] = NormalizedPixel(i % kLevels, launch.mean[i / kLevels], launch.std[i / kLevels]);
  }
  __syncthreads();
  Float* result = static_cast<Float*>(launch.result);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t quads = launch.values / kQuad;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int step = static_cast<int>(stride * kQuad % launch.channels);
  int first_channel = static_cast<int>(first * kQuad % launch.channels);
  for (int64_t quad = first; quad < quads; quad += stride) {
    const uchar4 pixels = reinterpret_cast<const uchar4*>(launch.pixels)[quad];
    const unsigned char levels[kQuad] = {pixels.x, pixels.y, pixels.z, pixels.w};
    int channel = first_channel;
    Quad<Float> values;
    for (int i = 0; i < kQuad; ++i) {
      Convert(table[channel * kLevels + levels[i]], &values.values[i]);
      channel = channel + 1 == launch.channels ? 0 : channel + 1;
    }
    reinterpret_cast<Quad<Float>*>(result)[quad] = values;
    first_channel = (first_channel + step) % launch.channels;
  }
  const int64_t rest = quads * kQuad + first;
  if (rest < launch.values) {
    Convert(table[rest % launch.channels * kLevels + launch.pixels[rest]], &result[rest]);
  }
}

}  // namespace

int LaunchNormalize(const NormalizeLaunch& launch, CUstream_st* stream) {
  const int64_t quads = (launch.values + kQuad - 1) / kQuad;
  const unsigned blocks = static_cast<unsigned>(std::clamp<int64_t>((quads + kThreads - 1) / kThreads, 1, kMostBlocks));
  switch (launch.type) {
    case NormalizedType::kFloat:
      NormalizeKernel<float><<<blocks, kThreads, 0, stream>>>(launch);
      break;
    case NormalizedType::kHalf:
      NormalizeKernel<__half><<<blocks, kThreads, 0, stream>>>(launch);
      break;
    case NormalizedType::kBFloat16:
      NormalizeKernel<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(launch);
      break;
  }
  return cudaGetLastError();
}

}  // namespace ssl
