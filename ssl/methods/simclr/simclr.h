// SPDX-License-Identifier: Apache-2.0
//
// SimCLR for a training program: one call makes everything it needs known to the registries.
//
//   ssl::Registries registries;
//   SSL_RETURN_IF_ERROR(ssl::RegisterSimclr(&registries));
#ifndef SSL_METHODS_SIMCLR_SIMCLR_H_
#define SSL_METHODS_SIMCLR_SIMCLR_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Adds the losses "simclr_info_nce_loss" and "multicrop_simclr_info_nce_loss", their configuration sections and their
// resolver, and the packages they build on: models and optimizers.
absl::Status RegisterSimclr(Registries* registries);

}  // namespace ssl

#endif  // SSL_METHODS_SIMCLR_SIMCLR_H_
