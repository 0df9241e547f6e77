// SPDX-License-Identifier: Apache-2.0
//
// Hooks check_nan, checkpoint, freeze_parameters, train_logger; metric sinks jsonl, tensorboard; the configuration
// section HOOKS; the functions that say which of them a configuration turns on.
#ifndef SSL_HOOKS_REGISTER_HOOKS_H_
#define SSL_HOOKS_REGISTER_HOOKS_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterHooks(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_REGISTER_HOOKS_H_
