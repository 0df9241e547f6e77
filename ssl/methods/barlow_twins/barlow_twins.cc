// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/barlow_twins/barlow_twins.h"

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/methods/barlow_twins/barlow_twins_method.h"
#include "ssl/methods/barlow_twins/barlow_twins_options.h"
#include "ssl/methods/num_crops.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Method>> BarlowTwinsFactory(const ConfigNode& params, const BuildContext& context) {
  BarlowTwinsOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.LOSS.barlow_twins_loss", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckViews(context, "barlow_twins_loss", 2));
  const BarlowTwinsLossOptions loss{options.lambda, options.scale_loss};
  return std::make_unique<BarlowTwinsMethod>(loss, options.embedding_dim);
}

}  // namespace

absl::Status RegisterBarlowTwins(Registries* registries) {
  if (!registries->AddPackage("barlow_twins")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(registries->methods.Register("barlow_twins_loss", &BarlowTwinsFactory));
  return registries->options.Add("LOSS.barlow_twins_loss", [] { return std::make_unique<BarlowTwinsOptions>(); });
}

}  // namespace ssl
