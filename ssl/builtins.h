// SPDX-License-Identifier: Apache-2.0
//
// Everything that ships with this library, in one call. A program that wants less calls the packages' own functions
// (RegisterSwav, RegisterData, ...) and links only those.
#ifndef SSL_BUILTINS_H_
#define SSL_BUILTINS_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterBuiltins(Registries* registries);

}  // namespace ssl

#endif  // SSL_BUILTINS_H_
