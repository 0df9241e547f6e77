// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/communicator.h"
#include "ssl/methods/moco/moco_method.h"
#include "ssl/methods/moco/moco_options.h"
#include "ssl/methods/moco/moco_resolver.h"
#include "ssl/models/batch_norm_group.h"
#include "ssl/models/model_section.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

// Shuffled batch norm keeps a key's statistics from telling which query it belongs to. Shared ones do so in its place,
// if there is anybody to share with.
absl::Status WarnOfOwnStatistics(const BuildContext& context) {
  const Communicator& ranks = context.communicator;
  SSL_ASSIGN_OR_RETURN(const int64_t group, BatchNormGroupSize(context.config, ranks.size()));
  if (group > 1 || ranks.size() == 1 || ranks.rank() > 0) return absl::OkStatus();
  SSL_LOG(WARNING) << "config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE is 1 rank here: with moco_loss batch statistics of a "
                      "rank's own images tell which key belongs to a query; set it to 0 (all ranks), or "
                      "CONVERT_BN_TO_SYNC_BN to False (shuffled batch norm)";
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Method>> MocoFactory(const ConfigNode& params, const BuildContext& context) {
  MocoOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.LOSS.moco_loss", UnknownKeys::kIgnore, &options));
  const ConfigNode& model = context.config.Section("MODEL");
  ModelSection section;
  SSL_RETURN_IF_ERROR(ReadOptions(model, "config.MODEL", UnknownKeys::kIgnore, &section));
  SyncBatchNormSection sync;
  SSL_RETURN_IF_ERROR(
      ReadOptions(model.Section("SYNC_BN_CONFIG"), "config.MODEL.SYNC_BN_CONFIG", UnknownKeys::kIgnore, &sync));
  if (sync.convert_bn_to_sync_bn) SSL_RETURN_IF_ERROR(WarnOfOwnStatistics(context));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Model> encoder,
                       context.registries.models.Make(section.base_model_name, model, context));
  ConfigNode root;
  root.SetPath("config.LOSS.moco_loss", params);
  return std::make_unique<MocoMethod>(options, std::move(encoder), /*shuffle_batch=*/!sync.convert_bn_to_sync_bn,
                                      context.seed, std::move(root));
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
