// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/methods/moco/moco_method.h"
#include "ssl/methods/moco/moco_options.h"
#include "ssl/methods/moco/moco_resolver.h"
#include "ssl/models/model_section.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Method>> MocoFactory(const ConfigNode& params, const BuildContext& context) {
  MocoOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.LOSS.moco_loss", UnknownKeys::kIgnore, &options));
  const ConfigNode& model = context.config.Section("MODEL");
  ModelSection section;
  SSL_RETURN_IF_ERROR(ReadOptions(model, "config.MODEL", UnknownKeys::kIgnore, &section));
  SyncBatchNormSection sync;
  SSL_RETURN_IF_ERROR(
      ReadOptions(model.Section("SYNC_BN_CONFIG"), "config.MODEL.SYNC_BN_CONFIG", UnknownKeys::kIgnore, &sync));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Model> encoder,
                       context.registries.models.Make(section.base_model_name, model, context));
  return std::make_unique<MocoMethod>(options, std::move(encoder), /*shuffle_batch=*/!sync.convert_bn_to_sync_bn,
                                      context.seed);
}

}  // namespace

absl::Status RegisterMoco(Registries* registries) {
  if (!registries->AddPackage("moco")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(registries->methods.Register("moco_loss", &MocoFactory));
  SSL_RETURN_IF_ERROR(registries->options.Add("LOSS.moco_loss", [] { return std::make_unique<MocoOptions>(); }));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveMoco(config); });
  return absl::OkStatus();
}

}  // namespace ssl
