// SPDX-License-Identifier: Apache-2.0
//
// Augmentation (augment_view.h) by kernels of this program, on NVIDIA GPUs.
#ifndef SSL_KERNELS_AUGMENT_BY_KERNEL_H_
#define SSL_KERNELS_AUGMENT_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "ssl/kernels/augment_view.h"

namespace ssl {

// Whether there are some for this device: in builds with --config=cuda, for NVIDIA GPUs.
bool HasAugmentKernel(const at::Device& device);

// As AugmentViews (augment_views.h). Requires HasAugmentKernel of the images' device. Internal when there are no
// kernels.
absl::Status AugmentByKernel(const at::Tensor& plans, const at::Tensor& images, const ViewNormalization& normalization,
                             at::Tensor* result);

}  // namespace ssl

#endif  // SSL_KERNELS_AUGMENT_BY_KERNEL_H_
