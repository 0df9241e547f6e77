// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/register_models.h"

#include "ssl/base/status_macros.h"
#include "ssl/core/registries.h"
#include "ssl/models/heads/dino_head.h"
#include "ssl/models/heads/mlp.h"
#include "ssl/models/heads/reshaping_heads.h"
#include "ssl/models/heads/swav_head.h"
#include "ssl/models/ssl_model_factory.h"
#include "ssl/models/trunks/regnet.h"
#include "ssl/models/trunks/resnet.h"
#include "ssl/models/trunks/vision_transformer.h"
#include "ssl/models/trunks/xcit.h"

namespace ssl {

absl::Status RegisterModels(Registries* registries) {
  if (!registries->AddPackage("models")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterDinoHead(registries));
  SSL_RETURN_IF_ERROR(RegisterMlp(registries));
  SSL_RETURN_IF_ERROR(RegisterRegNet(registries));
  SSL_RETURN_IF_ERROR(RegisterReshapingHeads(registries));
  SSL_RETURN_IF_ERROR(RegisterResNet(registries));
  SSL_RETURN_IF_ERROR(RegisterSslModel(registries));
  SSL_RETURN_IF_ERROR(RegisterSwavHead(registries));
  SSL_RETURN_IF_ERROR(RegisterVisionTransformer(registries));
  SSL_RETURN_IF_ERROR(RegisterXcit(registries));
  return absl::OkStatus();
}

}  // namespace ssl
