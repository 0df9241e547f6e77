// SPDX-License-Identifier: Apache-2.0
//
// Barlow Twins for a training program: one call makes everything it needs known to the registries.
//
//   ssl::Registries registries;
//   SSL_RETURN_IF_ERROR(ssl::RegisterBarlowTwins(&registries));
#ifndef SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_H_
#define SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Adds the loss "barlow_twins_loss" and its configuration section, and the packages it builds on: models and
// optimizers.
absl::Status RegisterBarlowTwins(Registries* registries);

}  // namespace ssl

#endif  // SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_H_
