// SPDX-License-Identifier: Apache-2.0
//
// What optimizers with a momentum share: its schedule, OPTIMIZER.param_schedulers.momentum, which ClassyVision has for
// those whose torch optimizer calls it so. Adam's betas have none.
#ifndef SSL_OPTIM_MOMENTUM_SCHEDULE_H_
#define SSL_OPTIM_MOMENTUM_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/registries.h"

namespace ssl {

// The entry of param_schedulers that sets the momentum; "" when `params`, the OPTIMIZER node, has none.
// InvalidArgument, with its place, for a schedule that cannot be made, or that leaves [0, 1].
absl::StatusOr<std::string> MomentumSchedule(const ConfigNode& params, const BuildContext& context);

// Gives each group its momentum and the schedule that sets it from then on.
void SetMomentum(double momentum, const std::string& schedule, std::vector<ParameterGroup>* groups);

}  // namespace ssl

#endif  // SSL_OPTIM_MOMENTUM_SCHEDULE_H_
