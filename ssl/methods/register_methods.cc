// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/register_methods.h"

#include "ssl/base/status_macros.h"
#include "ssl/core/registries.h"
#include "ssl/methods/barlow_twins/barlow_twins.h"
#include "ssl/methods/moco/moco.h"
#include "ssl/methods/simclr/simclr.h"
#include "ssl/methods/supervised/supervised.h"
#include "ssl/methods/swav/swav.h"

namespace ssl {

absl::Status RegisterMethods(Registries* registries) {
  if (!registries->AddPackage("methods")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(RegisterBarlowTwins(registries));
  SSL_RETURN_IF_ERROR(RegisterMoco(registries));
  SSL_RETURN_IF_ERROR(RegisterSimclr(registries));
  SSL_RETURN_IF_ERROR(RegisterSupervised(registries));
  SSL_RETURN_IF_ERROR(RegisterSwav(registries));
  return absl::OkStatus();
}

}  // namespace ssl
