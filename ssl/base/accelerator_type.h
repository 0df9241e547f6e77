// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_BASE_ACCELERATOR_TYPE_H_
#define SSL_BASE_ACCELERATOR_TYPE_H_

#include <c10/core/DeviceType.h>

#include <optional>

namespace ssl {

// Of the accelerator that LibTorch has kernels for in this process: CUDA in a program that was built with
// --config=cuda, or a device that a host program has registered with LibTorch itself (PrivateUse1), which then comes
// first. None in a program that was built without any. Asks no driver. Thread-safe.
std::optional<c10::DeviceType> AcceleratorType();

}  // namespace ssl

#endif  // SSL_BASE_ACCELERATOR_TYPE_H_
