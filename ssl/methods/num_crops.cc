// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/num_crops.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ssl {

void TakeNumCrops(ConfigNode* config, absl::string_view loss) {
  const ConfigNode* transforms = config->FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr) return;
  ConfigNode num_crops;
  for (const ConfigNode& transform : transforms->items()) {
    if (const ConfigNode* total = transform.Find("total_num_crops")) num_crops = *total;
  }
  if (!num_crops.is_null()) config->SetPath(absl::StrCat("LOSS.", loss, ".num_crops"), std::move(num_crops));
}

}  // namespace ssl
