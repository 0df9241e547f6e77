// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's driver says of this host's GPUs, in words that tell what to do. Only for a program that was built with
// --config=cuda; without a GPU, and without the driver, these are errors and no more. Thread-safe.
#ifndef SSL_CORE_CUDA_DEVICES_H_
#define SSL_CORE_CUDA_DEVICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

// At least 1. NotFound: there is no GPU, no driver, or an older driver than this program's CUDA needs.
absl::StatusOr<int64_t> CountCudaDevices();

// Unimplemented when this program has no code for this GPU, from 0, of those that there are.
absl::Status CheckCudaArchitecture(int64_t index);

}  // namespace ssl

#endif  // SSL_CORE_CUDA_DEVICES_H_
