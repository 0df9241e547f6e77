// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/stop_token.h"

#include <atomic>

namespace ssl {

void StopToken::Request(int reason) noexcept {
  int current = reason_.load(std::memory_order_relaxed);
  while (reason > current && !reason_.compare_exchange_weak(current, reason, std::memory_order_release)) {
  }
}

}  // namespace ssl
