// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/register_optim.h"

#include <memory>

#include "ssl/base/status_macros.h"
#include "ssl/optim/adamw.h"
#include "ssl/optim/default_grouper.h"
#include "ssl/optim/lr_scaling.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/schedules.h"
#include "ssl/optim/sgd.h"

namespace ssl {

absl::Status RegisterOptim(Registries* registries) {
  if (!registries->AddPackage("optim")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(registries->optimizers.Register("adamw", &MakeAdamWFromConfig));
  SSL_RETURN_IF_ERROR(registries->optimizers.Register("sgd", &MakeSgdFromConfig));
  SSL_RETURN_IF_ERROR(registries->parameter_groupers.Register("default", &MakeDefaultGrouperFromConfig));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("composite", &MakeCompositeSchedule));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("constant", &MakeConstantSchedule));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("cosine", &MakeCosineSchedule));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("linear", &MakeLinearSchedule));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("multistep", &MakeMultistepSchedule));
  SSL_RETURN_IF_ERROR(registries->schedules.Register("step", &MakeStepSchedule));
  registries->resolvers.push_back(&ResolveLearningRateScaling);
  return registries->options.Add("OPTIMIZER", [] { return std::make_unique<OptimizerOptions>(); });
}

}  // namespace ssl
