// SPDX-License-Identifier: Apache-2.0
//
// The memory of the accelerator that a run computes on.
#ifndef SSL_CORE_DEVICE_MEMORY_H_
#define SSL_CORE_DEVICE_MEMORY_H_

#include <c10/core/Device.h>

#include "absl/status/status.h"

namespace ssl {

// Whose tensors fill it: each lowers something else.
enum class MemoryUse { kTraining, kEvaluation };

// `status` with what to lower and the most that tensors took there since the process began, where `device` counts it,
// when it says that the memory of an accelerator is exhausted (kMemoryOfDevice, ssl/base/error_detail.h). Any other,
// and one that has it already, as it is. Thread-safe.
absl::Status WithMemoryAdvice(const absl::Status& status, const c10::Device& device,
                              MemoryUse use = MemoryUse::kTraining);

}  // namespace ssl

#endif  // SSL_CORE_DEVICE_MEMORY_H_
