// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/sampler_keys.h"

namespace ssl {

std::vector<std::string> SamplerKeys() {
  return {"MINI_EPOCHS", "POWER_LAW_SAMPLER", "STRATIFIED_SAMPLER", "USE_DEBUGGING_SAMPLER",
          "USE_STATEFUL_DISTRIBUTED_SAMPLER"};
}

}  // namespace ssl
