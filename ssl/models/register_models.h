// SPDX-License-Identifier: Apache-2.0
//
// Adds the models, trunks and heads of this package, and their configuration sections.
#ifndef SSL_MODELS_REGISTER_MODELS_H_
#define SSL_MODELS_REGISTER_MODELS_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

absl::Status RegisterModels(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_REGISTER_MODELS_H_
