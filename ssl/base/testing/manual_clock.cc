// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/testing/manual_clock.h"

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace ssl {

ManualClock::ManualClock(absl::Time start) : now_(start) {}

absl::Time ManualClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

void ManualClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  now_ += duration;
}

}  // namespace ssl
