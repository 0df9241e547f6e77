// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/balance_kernel.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "ssl/kernels/block_team.cuh"

namespace ssl {
namespace {

constexpr int kThreads = 1024;
constexpr int kColumns = kMostKernelPrototypes / kThreads;

// Row blockIdx.y of blocks has problem blockIdx.y.
__global__ void __launch_bounds__(kThreads) BalanceKernel(const __grid_constant__ BalanceLaunch launch) {
  __shared__ double reduction[BlockTeam::kScratchBytes / sizeof(double)];
  const int64_t entries = launch.samples * launch.prototypes * blockIdx.y;
  BalanceProblem problem;
  problem.scores = launch.scores + entries;
  problem.assignments = launch.assignments + entries;
  problem.masses = launch.work + static_cast<int64_t>(gridDim.x + 1) * launch.prototypes * blockIdx.y;
  problem.parts = problem.masses + launch.prototypes;
  problem.samples = launch.samples;
  problem.prototypes = launch.prototypes;
  ScoreBalancer<BlockTeam, RowOfBlocks, kColumns>(BlockTeam(reduction), RowOfBlocks(), problem, launch.options).Run();
}

}  // namespace

int BalanceBlocks(int64_t problems, int64_t samples) {
  int device = 0, processors = 0, of_processor = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, BalanceKernel, kThreads, 0) != cudaSuccess) {
    cudaGetLastError();  // LibTorch would report it at its next call
    return 0;
  }
  const int64_t fitting = static_cast<int64_t>(of_processor) * processors / problems;
  return static_cast<int>(std::min(fitting, samples));
}

int LaunchBalance(const BalanceLaunch& launch, int blocks, CUstream_st* stream) {
  BalanceLaunch argument = launch;
  void* arguments[] = {&argument};
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(launch.problems));
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&BalanceKernel), grid, dim3(kThreads), arguments, 0,
                                     stream);
}

}  // namespace ssl
