// SPDX-License-Identifier: Apache-2.0
#include "ssl/builtins.h"

#include "ssl/base/status_macros.h"
#include "ssl/core/register_core.h"
#include "ssl/data/register_data.h"
#include "ssl/engines/online_evaluation.h"
#include "ssl/engines/register_engines.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/meters/register_meters.h"
#include "ssl/methods/register_methods.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"
#include "ssl/vissl/vissl_keys.h"
#include "ssl/weights/weights_init.h"

namespace ssl {

absl::Status RegisterBuiltins(Registries* registries) {
  SSL_RETURN_IF_ERROR(RegisterCore(registries));
  SSL_RETURN_IF_ERROR(RegisterData(registries));
  SSL_RETURN_IF_ERROR(RegisterEngines(registries));
  SSL_RETURN_IF_ERROR(RegisterHooks(registries));
  PlanOnlineEvaluations(registries);
  SSL_RETURN_IF_ERROR(RegisterMeters(registries));
  SSL_RETURN_IF_ERROR(RegisterMethods(registries));
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(RegisterWeights(registries));
  return RegisterVisslKeys(registries);
}

}  // namespace ssl
