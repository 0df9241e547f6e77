// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host that an accelerator reads by itself: a copy from it makes nobody wait. It takes long to get, and
// cannot be swapped out.
#ifndef SSL_CORE_PINNED_MEMORY_H_
#define SSL_CORE_PINNED_MEMORY_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace ssl {

// A tensor on the host with undefined values, in memory that is pinned for `device`; in common memory for the CPU, and
// for an accelerator of a host program that has none to give. May throw LibTorch exceptions: where there is no memory
// to pin, one that says so of the host's. Thread-safe.
at::Tensor EmptyPinned(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format, const c10::Device& device);

// What EmptyPinned(of that many bytes) takes of the host's memory: LibTorch rounds up what it pins.
int64_t PinnedBytes(int64_t bytes, const c10::Device& device);

// Gives the system what was pinned for `device` and is not used any more, which LibTorch keeps for the next tensor of
// the same size; but for what a copy still reads that was not done when its tensor went. Thread-safe.
void ReleaseUnusedPinned(const c10::Device& device);

// Likewise, after waiting for the device: all of it. Thread-safe.
void FinishAndReleasePinned(const c10::Device& device);

}  // namespace ssl

#endif  // SSL_CORE_PINNED_MEMORY_H_
