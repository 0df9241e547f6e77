// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/head_outputs.h"

namespace ssl {

int64_t LastHeadOutputs(const ConfigNode& config) {
  const ConfigNode* heads = config.FindPath("MODEL.HEAD.PARAMS");
  if (heads == nullptr || heads->items().empty()) return 0;
  const ConfigNode* last = &heads->items().back();
  // Heads of several features stand in lists of their own: [[name, arguments], [[name, arguments], ...]].
  while (!last->items().empty() && last->items()[0].is_list()) last = &last->items().back();
  const ConfigNode* dims = last->items().size() == 2 ? last->items()[1].Find("dims") : nullptr;
  return dims == nullptr || dims->items().empty() ? 0 : dims->items().back().AsInt().value_or(0);
}

}  // namespace ssl
