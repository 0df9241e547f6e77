// SPDX-License-Identifier: Apache-2.0
//
// The way of normalize_pixels.h by a kernel of this program.
#ifndef SSL_KERNELS_NORMALIZE_BY_KERNEL_H_
#define SSL_KERNELS_NORMALIZE_BY_KERNEL_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ssl {

// Where there is one for the device of `pixels`: in builds with --config=cuda, for NVIDIA GPUs.
bool HasNormalizeKernel(const at::Tensor& pixels);

// NormalizePixels, whose checks the arguments have passed; pixels: channels-last. Internal when the kernel cannot be
// started, or there is none. Does not wait for it.
absl::StatusOr<at::Tensor> NormalizeByKernel(const at::Tensor& pixels, absl::Span<const double> mean,
                                             absl::Span<const double> std, at::ScalarType type);

}  // namespace ssl

#endif  // SSL_KERNELS_NORMALIZE_BY_KERNEL_H_
