// SPDX-License-Identifier: Apache-2.0
//
// Views out of packed 8-bit images by plans (view_plan.h), on the device where the images lie: by kernels on NVIDIA
// GPUs (augment_by_kernel.h), by threads of the host on the CPU, and on other devices by the operator
//
//   ssl::augment_views_(Tensor(a!) result, Tensor plans, Tensor images, float[] mean, float[] std) -> Tensor(a!)
//
// of LibTorch's dispatcher, whose kernel for the CPU that is: a device of a host program registers its own, or has a
// fallback that runs the CPU's in its memory. The operator is there from the first call on.
#ifndef SSL_KERNELS_AUGMENT_VIEWS_H_
#define SSL_KERNELS_AUGMENT_VIEWS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "ssl/kernels/augment_view.h"

namespace ssl {

// plans: on the host, uint8, ViewPlans one after another; work_begin of them is set. They are copied to the device, as
// are pinned ones without a wait; they may be written over when what the current stream has to do is done. images:
// uint8 of one dimension. result: float32 of one dimension on the same device. Nothing waits for the device.
// InvalidArgument for a view that is too large; Internal when a kernel cannot be started. Throws LibTorch exceptions,
// such as for a device that does not have the operator. Thread-safe.
absl::Status AugmentViews(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                          at::Tensor* result);

}  // namespace ssl

#endif  // SSL_KERNELS_AUGMENT_VIEWS_H_
