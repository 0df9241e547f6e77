// SPDX-License-Identifier: Apache-2.0
//
// Adds the engines and their configuration sections.
#ifndef SSL_ENGINES_REGISTER_ENGINES_H_
#define SSL_ENGINES_REGISTER_ENGINES_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterEngines(Registries* registries);

}  // namespace ssl

#endif  // SSL_ENGINES_REGISTER_ENGINES_H_
