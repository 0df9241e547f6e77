// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr.h"

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/methods/num_crops.h"
#include "ssl/methods/simclr/simclr_method.h"
#include "ssl/methods/simclr/simclr_options.h"
#include "ssl/methods/simclr/simclr_resolver.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

constexpr char kSimclr[] = "simclr_info_nce_loss";
constexpr char kMulticropSimclr[] = "multicrop_simclr_info_nce_loss";

absl::StatusOr<std::unique_ptr<Method>> SimclrFactory(const ConfigNode& params, const BuildContext& context) {
  SimclrOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.LOSS.simclr_info_nce_loss", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckViews(context, kSimclr, 2));
  const InfoNceOptions loss{2, options.temperature, /*negatives_of_all_ranks=*/true};
  return std::make_unique<SimclrMethod>(kSimclr, loss, options.buffer_params.embedding_dim);
}

absl::StatusOr<std::unique_ptr<Method>> MulticropSimclrFactory(const ConfigNode& params, const BuildContext& context) {
  MulticropSimclrOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(params, "config.LOSS.multicrop_simclr_info_nce_loss", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckViews(context, kMulticropSimclr, options.num_crops));
  const InfoNceOptions loss{options.num_crops, options.temperature, /*negatives_of_all_ranks=*/false};
  return std::make_unique<SimclrMethod>(kMulticropSimclr, loss, options.buffer_params.embedding_dim);
}

}  // namespace

absl::Status RegisterSimclr(Registries* registries) {
  if (!registries->AddPackage("simclr")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(registries->methods.Register(kSimclr, &SimclrFactory));
  SSL_RETURN_IF_ERROR(registries->methods.Register(kMulticropSimclr, &MulticropSimclrFactory));
  SSL_RETURN_IF_ERROR(
      registries->options.Add("LOSS.simclr_info_nce_loss", [] { return std::make_unique<SimclrOptions>(); }));
  SSL_RETURN_IF_ERROR(registries->options.Add("LOSS.multicrop_simclr_info_nce_loss",
                                              [] { return std::make_unique<MulticropSimclrOptions>(); }));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveSimclr(config); });
  return absl::OkStatus();
}

}  // namespace ssl
