// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host from which the stand-in device copies without making the host wait, as pinned memory is for a GPU.
#ifndef SSL_TESTING_STANDIN_PINNED_MEMORY_H_
#define SSL_TESTING_STANDIN_PINNED_MEMORY_H_

#include <ATen/core/CachingHostAllocator.h>

#include <cstdint>

namespace ssl {

// How often memory was pinned in this process, which takes long on a GPU. Thread-safe.
int64_t PinnedAllocations();

// Lets the next time fail, with what LibTorch says where CUDA finds no memory to pin. Thread-safe.
void FailNextPinning();

// Memory that is not used any more, in bytes, and was not given back to the system: kept for the next tensor of its
// size, as LibTorch keeps a GPU's. Thread-safe.
int64_t UnusedPinnedBytes();

// For the stand-in device itself; thread-safe.
at::HostAllocator& StandinPinnedAllocator();
bool IsPinnedForStandin(const void* memory);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_PINNED_MEMORY_H_
