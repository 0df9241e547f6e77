// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/batch_norm_relu_kernel.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "ssl/kernels/block_team.cuh"

namespace ssl {

template <>
struct MapValue<__half> {
  SSL_HOST_DEVICE static float ToFloat(__half value) { return __half2float(value); }
  SSL_HOST_DEVICE static __half FromFloat(float value) { return __float2half_rn(value); }
};

template <>
struct MapValue<__nv_bfloat16> {
  SSL_HOST_DEVICE static float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }
  SSL_HOST_DEVICE static __nv_bfloat16 FromFloat(float value) { return __float2bfloat16_rn(value); }
};

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksOfProcessor = 2;  // at the same time, for which the kernels are compiled
constexpr int kChannelThreads = 256;
constexpr int kChannelsOfBlock = kChannelThreads / 32;  // a warp has one

template <typename Pass, typename Launch>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor) SumsKernel(const __grid_constant__ Launch launch) {
  __shared__ float shared[kThreads * Pass::kVector];
  Pass(BlockTeam(nullptr), RowOfBlocks(), launch).AddUp(shared);
}

template <typename Pass, typename Launch>
__global__ void __launch_bounds__(kChannelThreads) ChannelsKernel(const __grid_constant__ Launch launch) {
  Pass(BlockTeam(nullptr), RowOfBlocks(), launch).SolveChannels();
}

template <typename Pass, typename Launch>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor) ResultKernel(const __grid_constant__ Launch launch) {
  Pass(BlockTeam(nullptr), RowOfBlocks(), launch).WriteResult();
}

template <typename Pass, typename Launch>
int Start(const Launch& launch, CUstream_st* stream) {
  const auto teams = static_cast<unsigned>(launch.grid.teams());
  const auto blocks = static_cast<unsigned>((launch.shape.channels + kChannelsOfBlock - 1) / kChannelsOfBlock);
  SumsKernel<Pass><<<teams, kThreads, 0, stream>>>(launch);
  ChannelsKernel<Pass><<<blocks, kChannelThreads, 0, stream>>>(launch);
  ResultKernel<Pass><<<teams, kThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

template <template <typename, typename, typename, bool> class Pass, typename T, typename Launch>
int StartOn(const Launch& launch, bool has_residual, CUstream_st* stream) {
  return has_residual ? Start<Pass<BlockTeam, RowOfBlocks, T, true>>(launch, stream)
                      : Start<Pass<BlockTeam, RowOfBlocks, T, false>>(launch, stream);
}

template <template <typename, typename, typename, bool> class Pass, typename Launch>
int StartFor(const Launch& launch, bool has_residual, CUstream_st* stream) {
  switch (launch.shape.type) {
    case MapType::kFloat:
      return StartOn<Pass, float>(launch, has_residual, stream);
    case MapType::kHalf:
      return StartOn<Pass, __half>(launch, has_residual, stream);
    default:
      return StartOn<Pass, __nv_bfloat16>(launch, has_residual, stream);
  }
}

}  // namespace

MapGrid GridFor(const MapShape& shape, int processors) {
  return MapGridFor(shape, kThreads, kBlocksOfProcessor * processors);
}

int LaunchBatchNormRelu(const BatchNormReluLaunch& launch, CUstream_st* stream) {
  return StartFor<BatchNormReluForward>(launch, launch.residual != nullptr, stream);
}

int LaunchBatchNormReluBackward(const BatchNormReluBackwardLaunch& launch, CUstream_st* stream) {
  return StartFor<BatchNormReluBackward>(launch, launch.output != nullptr, stream);
}

}  // namespace ssl
