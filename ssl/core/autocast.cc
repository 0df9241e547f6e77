// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/autocast.h"

#include <ATen/autocast_mode.h>

namespace ssl {

Autocast CurrentAutocast() {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return Autocast::kOff;
  return at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf ? Autocast::kFloat16 : Autocast::kBFloat16;
}

AutocastScope::AutocastScope(Autocast autocast)
    : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
      cache_was_enabled_(at::autocast::is_autocast_cache_enabled()),
      type_was_(static_cast<int>(at::autocast::get_autocast_dtype(at::kCPU))) {
  // LibTorch keeps one cache of short copies per thread and finds a copy by its parameter alone: what was cached in
  // another format, or before the last update, would be taken for this scope's.
  at::autocast::clear_cache();
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(at::kCPU, autocast != Autocast::kOff);
  if (autocast == Autocast::kOff) return;
  at::autocast::set_autocast_dtype(at::kCPU, autocast == Autocast::kFloat16 ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(true);
}

AutocastScope::~AutocastScope() {
  at::autocast::decrement_nesting();
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(cache_was_enabled_);
  at::autocast::set_autocast_dtype(at::kCPU, static_cast<at::ScalarType>(type_was_));
  at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
}

}  // namespace ssl
