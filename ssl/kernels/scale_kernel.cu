// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/scale_kernel.h"

#include <cuda_runtime.h>

#include "ssl/kernels/block_team.cuh"

namespace ssl {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads) ScaleKernel(const __grid_constant__ ScaleLaunch launch) {
  ScaleChunk(BlockTeam(nullptr), launch, static_cast<int>(blockIdx.x));
}

}  // namespace

int LaunchScale(const ScaleLaunch& launch, CUstream_st* stream) {
  ScaleKernel<<<static_cast<unsigned>(launch.chunks()), kThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace ssl
