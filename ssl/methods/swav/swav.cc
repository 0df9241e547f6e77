// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/reader.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/methods/num_crops.h"
#include "ssl/methods/swav/swav_method.h"
#include "ssl/methods/swav/swav_options.h"
#include "ssl/methods/swav/swav_resolver.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Method>> SwavFactory(const ConfigNode& params, const BuildContext& context) {
  SwavOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.LOSS.swav_loss", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckViews(context, "swav_loss", options.num_crops));
  ConfigNode root;
  root.SetPath("config.LOSS.swav_loss", params);
  return std::make_unique<SwavMethod>(options, context.seed, std::move(root));
}

}  // namespace

absl::Status RegisterSwav(Registries* registries) {
  if (!registries->AddPackage("swav")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterModels(registries));
  SSL_RETURN_IF_ERROR(RegisterOptim(registries));
  SSL_RETURN_IF_ERROR(registries->methods.Register("swav_loss", &SwavFactory));
  SSL_RETURN_IF_ERROR(registries->options.Add("LOSS.swav_loss", [] { return std::make_unique<SwavOptions>(); }));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) { return ResolveSwav(config); });
  return absl::OkStatus();
}

}  // namespace ssl
