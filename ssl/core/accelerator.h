// SPDX-License-Identifier: Apache-2.0
//
// What MACHINE.DEVICE: gpu stands for in this process: the accelerator that LibTorch has kernels for
// (ssl/base/accelerator_type.h). Messages say what is missing and the way out, and are to follow the key.
#ifndef SSL_CORE_ACCELERATOR_H_
#define SSL_CORE_ACCELERATOR_H_

#include <c10/core/Device.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

// Unimplemented in a program that was built without any. Asks no driver: the machine that checks a configuration need
// not be the one that trains. Thread-safe.
absl::Status CheckAcceleratorIsBuilt();

// The one with this index, from 0: that of the process among those of its host. NotFound when this host has fewer, or
// no driver that is new enough; Unimplemented when this program has no code for it. They end ssl_main as mistakes of a
// configuration do. Thread-safe.
absl::StatusOr<c10::Device> Accelerator(int64_t index);

}  // namespace ssl

#endif  // SSL_CORE_ACCELERATOR_H_
