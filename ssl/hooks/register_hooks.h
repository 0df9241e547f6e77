// SPDX-License-Identifier: Apache-2.0
//
// All hooks and metric sinks of this package with their keys, the list config.hooks, and the functions that say which
// of them a configuration turns on (configured_hooks.h).
#ifndef SSL_HOOKS_REGISTER_HOOKS_H_
#define SSL_HOOKS_REGISTER_HOOKS_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterHooks(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_REGISTER_HOOKS_H_
