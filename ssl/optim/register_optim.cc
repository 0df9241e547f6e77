// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/register_optim.h"

#include <memory>

#include "ssl/base/status_macros.h"
#include "ssl/core/registry.h"
#include "ssl/optim/adam.h"
#include "ssl/optim/default_grouper.h"
#include "ssl/optim/dino_grouper.h"
#include "ssl/optim/lars.h"
#include "ssl/optim/layer_decay_grouper.h"
#include "ssl/optim/linear_eval_heads_grouper.h"
#include "ssl/optim/lr_scaling.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/rmsprop.h"
#include "ssl/optim/schedules.h"
#include "ssl/optim/sgd.h"
#include "ssl/optim/zero_resolver.h"

namespace ssl {

namespace {

absl::Status RegisterOptimizers(Registry<Optimizer>* optimizers) {
  SSL_RETURN_IF_ERROR(optimizers->Register("adam", &MakeAdamFromConfig));
  SSL_RETURN_IF_ERROR(optimizers->Register("adamw", &MakeAdamWFromConfig));
  SSL_RETURN_IF_ERROR(optimizers->Register("lars", &MakeLarsFromConfig));
  SSL_RETURN_IF_ERROR(optimizers->Register("rmsprop", &MakeRmspropFromConfig));
  SSL_RETURN_IF_ERROR(optimizers->Register("sgd", &MakeSgdFromConfig));
  return optimizers->Register("sgd_fsdp", &MakeSgdFromConfig);
}

absl::Status RegisterGroupers(Registry<ParameterGrouper>* groupers) {
  SSL_RETURN_IF_ERROR(groupers->Register("default", &MakeDefaultGrouperFromConfig));
  SSL_RETURN_IF_ERROR(groupers->Register("dino", &MakeDinoGrouperFromConfig));
  SSL_RETURN_IF_ERROR(groupers->Register("linear_eval_heads", &MakeLinearEvalHeadsGrouperFromConfig));
  return groupers->Register("lr_decay", &MakeLayerDecayGrouperFromConfig);
}

absl::Status RegisterSchedules(Registry<Schedule>* schedules) {
  SSL_RETURN_IF_ERROR(schedules->Register("composite", &MakeCompositeSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("constant", &MakeConstantSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("cosine", &MakeCosineSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("cosine_warm_restart", &MakeCosineWarmRestartSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("exponential", &MakeExponentialSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("inverse_sqrt", &MakeInverseSqrtSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("linear", &MakeLinearSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("multistep", &MakeMultistepSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("polynomial", &MakePolynomialSchedule));
  SSL_RETURN_IF_ERROR(schedules->Register("step", &MakeStepSchedule));
  return schedules->Register("step_with_fixed_gamma", &MakeStepWithFixedGammaSchedule);
}

}  // namespace

absl::Status RegisterOptim(Registries* registries) {
  if (!registries->AddPackage("optim")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterOptimizers(&registries->optimizers));
  SSL_RETURN_IF_ERROR(RegisterGroupers(&registries->parameter_groupers));
  SSL_RETURN_IF_ERROR(RegisterSchedules(&registries->schedules));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveZero(config); });
  registries->resolvers.push_back(
      [](const Registries&, ConfigNode* config) { return ResolveLearningRateScaling(config); });
  return registries->options.Add("OPTIMIZER", [] { return std::make_unique<OptimizerOptions>(); });
}

}  // namespace ssl
