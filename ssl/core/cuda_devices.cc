// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/cuda_devices.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

constexpr char kWayOut[] = "; config.MACHINE.DEVICE=cpu runs without one";

// 13000 is 13.0.
std::string VersionName(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

std::string WhatIsWrongWithTheDriver() {
  int of_driver = 0;
  int of_program = 0;
  cudaDriverGetVersion(&of_driver);
  cudaRuntimeGetVersion(&of_program);
  if (of_driver == 0) {
    return "no GPU can be used: NVIDIA's driver is not installed or not loaded on this machine (see nvidia-smi)";
  }
  return absl::StrCat("no GPU can be used: NVIDIA's driver is too old. It knows CUDA up to ", VersionName(of_driver),
                      ", and this program needs ", VersionName(of_program), ": release 580 or newer (see nvidia-smi)");
}

std::string WhatHidesAll() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "no GPU can be used: NVIDIA's driver finds none on this machine";
  return absl::StrCat("no GPU can be used: NVIDIA's driver shows none, and CUDA_VISIBLE_DEVICES is '", visible, "'");
}

}  // namespace

absl::StatusOr<int64_t> CountCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();  // LibTorch would report it at its next call
  if (error == cudaErrorInsufficientDriver) {
    return absl::NotFoundError(absl::StrCat(WhatIsWrongWithTheDriver(), kWayOut));
  }
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return absl::NotFoundError(absl::StrCat(WhatHidesAll(), kWayOut));
  }
  return absl::NotFoundError(absl::StrCat("no GPU can be used: NVIDIA's driver says ", cudaGetErrorName(error), " (",
                                          cudaGetErrorString(error), ")", kWayOut));
}

absl::Status CheckCudaArchitecture(int64_t index) {
  int major = 0;
  int minor = 0;
  const int device = static_cast<int>(index);
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return absl::NotFoundError(absl::StrCat("GPU ", index, " does not answer: ", cudaGetErrorName(error), " (",
                                            cudaGetErrorString(error), ")"));
  }
  if (10 * major + minor >= SSL_OLDEST_ARCHITECTURE) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "GPU ", index, " is of architecture sm_", major, minor, ", and this program has code for sm_",
      SSL_OLDEST_ARCHITECTURE, " and newer (docs/cuda.md); CUDA_VISIBLE_DEVICES chooses another one", kWayOut));
}

}  // namespace ssl
