// SPDX-License-Identifier: Apache-2.0
//
// balance_scores.h as a kernel for NVIDIA GPUs: one cooperative launch for all iterations of all problems.
#ifndef SSL_KERNELS_BALANCE_KERNEL_H_
#define SSL_KERNELS_BALANCE_KERNEL_H_

#include <cstdint>

#include "ssl/kernels/balance_scores.h"

struct CUstream_st;

namespace ssl {

struct BalanceLaunch {
  const float* scores = nullptr;  // [problems, n, K], on the current device
  float* assignments = nullptr;   // likewise
  float* work = nullptr;          // BalanceWorkFloats of them
  int problems = 1;
  int64_t samples = 0;
  int prototypes = 0;
  BalanceOptions options;
};

// What a thread keeps of more prototypes would not fit its registers.
constexpr int kMostKernelPrototypes = 4096;

// Blocks for each problem, so that all of them run at the same time on the current device; 0 where even one does not.
int BalanceBlocks(int64_t problems, int64_t samples);

inline int64_t BalanceWorkFloats(int problems, int blocks, int prototypes) {
  return static_cast<int64_t>(problems) * (blocks + 1) * prototypes;
}

// Starts it on the stream. Returns the cudaError_t of the launch, 0 when it is well.
int LaunchBalance(const BalanceLaunch& launch, int blocks, CUstream_st* stream);

}  // namespace ssl

#endif  // SSL_KERNELS_BALANCE_KERNEL_H_
