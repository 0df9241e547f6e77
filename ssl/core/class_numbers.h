// SPDX-License-Identifier: Apache-2.0
//
// Whether the labels of a batch are numbers of classes. Pure; any thread.
#ifndef SSL_CORE_CLASS_NUMBERS_H_
#define SSL_CORE_CLASS_NUMBERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace ssl {

// targets: [B] int64. InvalidArgument, naming sample, label and classes, when a label is neither in [0, num_classes)
// nor ignore_index. Looks at labels on the CPU only: for other devices that would wait for the device in every step,
// and a run checks them before they are copied there.
absl::Status CheckClassNumbers(const at::Tensor& targets, int64_t num_classes, std::optional<int64_t> ignore_index);

// The same for what a batch has as targets, before it is copied to a device: OK where these are not class numbers, or
// num_classes is 0, not known.
absl::Status CheckTargets(const at::Tensor& targets, int64_t num_classes, std::optional<int64_t> ignore_index);

}  // namespace ssl

#endif  // SSL_CORE_CLASS_NUMBERS_H_
