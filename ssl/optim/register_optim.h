// SPDX-License-Identifier: Apache-2.0
//
// Optimizers sgd, adam, adamw, lars, rmsprop; schedules constant, linear, cosine, cosine_warm_restart, inverse_sqrt,
// multistep, polynomial, step, step_with_fixed_gamma, composite; the parameter groupings default, dino, lr_decay,
// linear_eval_heads; the configuration section OPTIMIZER and the resolver of auto_lr_scaling.
#ifndef SSL_OPTIM_REGISTER_OPTIM_H_
#define SSL_OPTIM_REGISTER_OPTIM_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterOptim(Registries* registries);

}  // namespace ssl

#endif  // SSL_OPTIM_REGISTER_OPTIM_H_
