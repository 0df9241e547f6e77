// SPDX-License-Identifier: Apache-2.0
//
// Memory of large CPU tensors, kept from step to step.
//
// A training step asks for the same sizes again and again. The general allocator either gives large blocks back to the
// system, so that every step faults them in anew, or keeps them in fragments. This one keeps freed blocks by size and
// hands the same block out again: no system call and no page fault in the steady state, and huge pages where the
// system has them.
//
// LibTorch has one CPU allocator for the whole process, so a library must not choose it: the command installs this
// one, an embedding program may. Thread-safe.
#ifndef SSL_CORE_TENSOR_MEMORY_H_
#define SSL_CORE_TENSOR_MEMORY_H_

#include <cstdint>

namespace ssl {

// Bytes of large blocks.
struct TensorMemory {
  int64_t in_use = 0;
  int64_t kept = 0;  // free, for the next tensor of that size
  int64_t peak = 0;  // most in use at once since the last ResetTensorMemoryPeak
};

// From now on LibTorch's CPU tensors live here. Tensors that exist already are freed as they were made. Call it before
// other threads use LibTorch; a second call does nothing.
void InstallTensorMemory();

// Zero before the installation.
TensorMemory GetTensorMemory();
bool TensorMemoryIsInstalled();

// From now on, the peak is that of what is in use from here.
void ResetTensorMemoryPeak();

// Gives the kept blocks back to the system.
void ReleaseTensorMemory();

}  // namespace ssl

#endif  // SSL_CORE_TENSOR_MEMORY_H_
