// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/autocast.h"

#include <ATen/autocast_mode.h>

#include "ssl/base/accelerator_type.h"

namespace ssl {

Autocast CurrentAutocast() {
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return Autocast::kOff;
  return at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf ? Autocast::kFloat16 : Autocast::kBFloat16;
}

AutocastScope::Setting AutocastScope::Get(c10::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), static_cast<int>(at::autocast::get_autocast_dtype(device))};
}

void AutocastScope::Set(c10::DeviceType device, const Setting& setting) {
  at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(setting.type));
  at::autocast::set_autocast_enabled(device, setting.enabled);
}

AutocastScope::AutocastScope(Autocast autocast)
    : accelerator_(AcceleratorType().value_or(at::kCPU)),
      cpu_was_(Get(at::kCPU)),
      accelerator_was_(Get(accelerator_)),
      cache_was_enabled_(at::autocast::is_autocast_cache_enabled()) {
  // LibTorch keeps one cache of short copies per thread and finds a copy by its parameter alone: what was cached in
  // another format, or before the last update, would be taken for this scope's.
  at::autocast::clear_cache();
  at::autocast::increment_nesting();
  for (const at::DeviceType device : {at::kCPU, accelerator_}) {
    at::autocast::set_autocast_enabled(device, autocast != Autocast::kOff);
    if (autocast == Autocast::kOff) continue;
    at::autocast::set_autocast_dtype(device, autocast == Autocast::kFloat16 ? at::kHalf : at::kBFloat16);
  }
  if (autocast != Autocast::kOff) at::autocast::set_autocast_cache_enabled(true);
}

AutocastScope::~AutocastScope() {
  at::autocast::decrement_nesting();
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(cache_was_enabled_);
  Set(accelerator_, accelerator_was_);
  Set(at::kCPU, cpu_was_);
}

}  // namespace ssl
