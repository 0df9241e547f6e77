// SPDX-License-Identifier: Apache-2.0
//
// MoCo v2 for a training program: one call makes everything it needs known to the registries.
//
//   ssl::Registries registries;
//   SSL_RETURN_IF_ERROR(ssl::RegisterMoco(&registries));
#ifndef SSL_METHODS_MOCO_MOCO_H_
#define SSL_METHODS_MOCO_MOCO_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Adds the loss "moco_loss", its configuration section and its resolver, and the packages it builds on: models and
// optimizers.
absl::Status RegisterMoco(Registries* registries);

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_MOCO_H_
