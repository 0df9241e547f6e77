// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host that an accelerator reads by itself: a copy from it makes nobody wait. It takes long to get, and
// cannot be swapped out.
#ifndef SSL_CORE_PINNED_MEMORY_H_
#define SSL_CORE_PINNED_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace ssl {

// A tensor on the host with undefined values, in memory that is pinned for `device`; in common memory for the CPU, and
// for an accelerator of a host program that has none to give. May throw LibTorch exceptions. Thread-safe.
at::Tensor EmptyPinned(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format, const c10::Device& device);

}  // namespace ssl

#endif  // SSL_CORE_PINNED_MEMORY_H_
