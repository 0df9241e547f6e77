// SPDX-License-Identifier: Apache-2.0
//
// augment_view.h as two kernels for NVIDIA GPUs, one after the other.
#ifndef SSL_KERNELS_AUGMENT_KERNEL_H_
#define SSL_KERNELS_AUGMENT_KERNEL_H_

#include <cstdint>

#include "ssl/kernels/augment_view.h"
#include "ssl/kernels/view_plan.h"

struct CUstream_st;

namespace ssl {

// All pointers are of the current device.
struct AugmentLaunch {
  const ViewPlan* plans = nullptr;  // num_views of them
  int num_views = 0;
  int most_tasks = 0;               // of the views' first passes: ResizePass::tasks
  const uint8_t* images = nullptr;  // packed
  uint8_t* work = nullptr;          // of all views
  float* result = nullptr;
  ViewNormalization normalization;
};

// Starts them on the stream. Returns the cudaError_t of the launch, 0 when it is well.
int LaunchAugment(const AugmentLaunch& launch, CUstream_st* stream);

}  // namespace ssl

#endif  // SSL_KERNELS_AUGMENT_KERNEL_H_
