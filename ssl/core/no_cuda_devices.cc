// SPDX-License-Identifier: Apache-2.0
//
// Of a build without CUDA, in which nobody asks.
#include "ssl/core/cuda_devices.h"

namespace ssl {

absl::StatusOr<int64_t> CountCudaDevices() { return absl::UnimplementedError("this program was built without CUDA"); }

absl::Status CheckCudaArchitecture(int64_t) { return CountCudaDevices().status(); }

}  // namespace ssl
