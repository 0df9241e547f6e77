// SPDX-License-Identifier: Apache-2.0
//
// Batches of 8-bit pixels become what a model takes, on the device where they lie. Values are those that the loader
// writes into batches of floats, bit for bit: on the CPU, by a kernel on NVIDIA GPUs (--config=cuda), and by LibTorch's
// operators on other devices, where these round as the CPU's.
//
//   SSL_ASSIGN_OR_RETURN(view, NormalizePixels(view, normalization.mean, normalization.std));
//
// Nothing is read back from the device or copied to it. Thread-safe.
#ifndef SSL_KERNELS_NORMALIZE_PIXELS_H_
#define SSL_KERNELS_NORMALIZE_PIXELS_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ssl {

// (pixels / 255 - mean) / std by channel, computed in float32. pixels: [B, C, H, W] uint8, C of 1 or 3, best
// channels-last (anything else is copied first). mean, std: one value, or C of them; mean 0 and std 1 leave pixels /
// 255. Returns [B, C, H, W] of `type` (float32, or float16 and bfloat16, to which the float32 value is rounded),
// channels-last. InvalidArgument for other pixels, types or numbers of values. May throw LibTorch exceptions.
absl::StatusOr<at::Tensor> NormalizePixels(const at::Tensor& pixels, absl::Span<const double> mean,
                                           absl::Span<const double> std, at::ScalarType type = at::kFloat);

}  // namespace ssl

#endif  // SSL_KERNELS_NORMALIZE_PIXELS_H_
