// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/register_engines.h"

#include <memory>

#include "ssl/base/status_macros.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/knn_engine.h"
#include "ssl/engines/train_engine.h"

namespace ssl {

absl::Status RegisterEngines(Registries* registries) {
  if (!registries->AddPackage("engines")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(registries->engines.Register("knn", MakeKnnEngine));
  SSL_RETURN_IF_ERROR(registries->engines.Register("train", MakeTrainEngine));
  return registries->options.Add("NEAREST_NEIGHBOR", [] { return std::make_unique<NearestNeighborOptions>(); });
}

}  // namespace ssl
