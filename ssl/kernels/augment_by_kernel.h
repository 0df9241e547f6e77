// SPDX-License-Identifier: Apache-2.0
//
// Augmentation (augment_view.h) by kernels of this program, on NVIDIA GPUs.
#ifndef SSL_KERNELS_AUGMENT_BY_KERNEL_H_
#define SSL_KERNELS_AUGMENT_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ssl/kernels/augment_view.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

// Whether there are some for this device: in builds with --config=cuda, for NVIDIA GPUs.
bool HasAugmentKernel(const at::Device& device);

// Makes the views of `plans` out of `images`, packed bytes (uint8, one dimension), and writes them into `result`,
// float32 of one dimension on the same device. work_begin of the plans is set here. The plans are copied to the device;
// nothing waits for it. InvalidArgument for a view of more than 2^31 - 1 values; Internal when a kernel cannot be
// started, or there is none. May throw LibTorch exceptions.
absl::Status AugmentByKernel(absl::Span<ViewPlan> plans, const at::Tensor& images,
                             const ViewNormalization& normalization, at::Tensor* result);

}  // namespace ssl

#endif  // SSL_KERNELS_AUGMENT_BY_KERNEL_H_
