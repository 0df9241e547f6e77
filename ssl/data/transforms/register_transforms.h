// SPDX-License-Identifier: Apache-2.0
//
// The names that TRANSFORMS may hold.
#ifndef SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_
#define SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

// AlreadyExists when a name is taken.
absl::Status RegisterTransforms(Registries* registries);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_
