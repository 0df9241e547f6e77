// SPDX-License-Identifier: Apache-2.0
//
// Optimizers sgd, adamw; schedules constant, linear, cosine, multistep, step, composite; the parameter grouping
// "default"; the configuration section OPTIMIZER and the resolver of auto_lr_scaling.
#ifndef SSL_OPTIM_REGISTER_OPTIM_H_
#define SSL_OPTIM_REGISTER_OPTIM_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterOptim(Registries* registries);

}  // namespace ssl

#endif  // SSL_OPTIM_REGISTER_OPTIM_H_
