// SPDX-License-Identifier: Apache-2.0
//
// What the training loop itself brings: its configuration keys, its train steps, and CUDA graphs.
#ifndef SSL_CORE_REGISTER_CORE_H_
#define SSL_CORE_REGISTER_CORE_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

// A second call does nothing.
absl::Status RegisterCore(Registries* registries);

}  // namespace ssl

#endif  // SSL_CORE_REGISTER_CORE_H_
