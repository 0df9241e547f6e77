// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/autocast.h"

#include <ATen/autocast_mode.h>

namespace ssl {

AutocastScope::AutocastScope(Autocast autocast) : autocast_(autocast) {
  if (autocast_ == Autocast::kOff) return;
  at::autocast::set_autocast_dtype(at::kCPU, autocast_ == Autocast::kFloat16 ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (autocast_ == Autocast::kOff) return;
  // The cache holds this step's short copies of the parameters: the next step must not see them.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace ssl
