// SPDX-License-Identifier: Apache-2.0
//
// What losses of class scores do with scores and labels first. Pure; any thread.
#ifndef SSL_LOSSES_SCORES_H_
#define SSL_LOSSES_SCORES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace ssl {

// The same values in float32, or float64 when they are that: losses do not round to the short types of autocast.
at::Tensor FullPrecision(const at::Tensor& values);

// rows: [B, C]. Each row over its Euclidean length (at least 1e-12), as torch.nn.functional.normalize.
at::Tensor UnitRows(const at::Tensor& rows);

// targets: [B] int64. InvalidArgument, naming sample, label and classes, when a label is neither in [0, num_classes)
// nor ignore_index. Looks at labels on the CPU only: for other devices that would wait for the device in every step.
absl::Status CheckClassNumbers(const at::Tensor& targets, int64_t num_classes, std::optional<int64_t> ignore_index);

}  // namespace ssl

#endif  // SSL_LOSSES_SCORES_H_
