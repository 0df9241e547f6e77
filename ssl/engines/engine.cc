// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/engine.h"

#include <utility>

#include "ssl/core/run_progress.h"

namespace ssl {

OpeningScope::OpeningScope(const EngineContext& context) : context_(context) {
  if (context_.progress != nullptr) phase_ = std::exchange(context_.progress->phase, RunProgress().phase);
}

OpeningScope::~OpeningScope() {
  if (context_.progress != nullptr) context_.progress->phase = phase_;
}

// A signal that came just before is seen here, and any later one ends the process.
absl::Status OpeningScope::CheckNotStopped() const {
  return context_.stop.requested() ? absl::CancelledError("stopped before the data were opened") : absl::OkStatus();
}

}  // namespace ssl
