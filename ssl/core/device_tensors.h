// SPDX-License-Identifier: Apache-2.0
//
// What a run has on the device that it computes on: the state of its parts. Its batches: device_batch_source.h.
#ifndef SSL_CORE_DEVICE_TENSORS_H_
#define SSL_CORE_DEVICE_TENSORS_H_

#include <c10/core/Device.h>

#include "ssl/core/stateful.h"

namespace ssl {

// Moves all tensors of `root`'s state to `device`, in their memory format. Handles stay what they are: who holds a
// parameter holds the moved one. Before there are gradients of them, or what counts on where they lie. May throw
// LibTorch exceptions.
void MoveState(Stateful& root, const at::Device& device);

// Where the first tensor of `root`'s state lies; the CPU when it has none.
c10::Device DeviceOf(Stateful& root);

}  // namespace ssl

#endif  // SSL_CORE_DEVICE_TENSORS_H_
