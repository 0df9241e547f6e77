// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/augment_kernel.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "ssl/kernels/block_team.cuh"

namespace ssl {
namespace {

constexpr int kResizeThreads = 128;
constexpr int kMostResizeBlocks = 64;  // of one view
constexpr int kViewThreads = 512;

// View blockIdx.x: of the other directions a grid has 65,535 blocks at most.
__global__ void __launch_bounds__(kResizeThreads) ResizeKernel(const __grid_constant__ AugmentLaunch launch) {
  const ViewPlan& plan = launch.plans[blockIdx.x];
  const int index = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  RunResizePass(FirstPass(plan, launch.images, launch.work + plan.work_begin), index,
                static_cast<int>(gridDim.y * blockDim.x));
}

// View blockIdx.x.
__global__ void __launch_bounds__(kViewThreads, 2) AugmentKernel(const __grid_constant__ AugmentLaunch launch) {
  __shared__ double reduction[BlockTeam::kScratchBytes / sizeof(double)];
  __shared__ ViewPlan plan;
  if (threadIdx.x == 0) plan = launch.plans[blockIdx.x];
  __syncthreads();
  ViewAugmenter<BlockTeam>(BlockTeam(reduction), plan, launch.work + plan.work_begin)
      .Run(launch.normalization, launch.result + plan.result_begin);
}

}  // namespace

int LaunchAugment(const AugmentLaunch& launch, CUstream_st* stream) {
  const int blocks = std::clamp((launch.most_tasks + kResizeThreads - 1) / kResizeThreads, 1, kMostResizeBlocks);
  const dim3 grid(static_cast<unsigned>(launch.num_views), static_cast<unsigned>(blocks));
  ResizeKernel<<<grid, kResizeThreads, 0, stream>>>(launch);
  AugmentKernel<<<static_cast<unsigned>(launch.num_views), kViewThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace ssl
