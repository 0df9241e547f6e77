// SPDX-License-Identifier: Apache-2.0
//
// Adds every self-supervised method, each with the packages it builds on.
#ifndef SSL_METHODS_REGISTER_METHODS_H_
#define SSL_METHODS_REGISTER_METHODS_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

absl::Status RegisterMethods(Registries* registries);

}  // namespace ssl

#endif  // SSL_METHODS_REGISTER_METHODS_H_
