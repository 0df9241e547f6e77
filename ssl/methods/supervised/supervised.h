// SPDX-License-Identifier: Apache-2.0
//
// Registers training with labels under the names of its losses: those of multiple_output_losses.h and torch_losses.h,
// each with its section LOSS.<name>.
#ifndef SSL_METHODS_SUPERVISED_SUPERVISED_H_
#define SSL_METHODS_SUPERVISED_SUPERVISED_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// With models, optimizers and meters.
absl::Status RegisterSupervised(Registries* registries);

}  // namespace ssl

#endif  // SSL_METHODS_SUPERVISED_SUPERVISED_H_
