// SPDX-License-Identifier: Apache-2.0
//
// A clock that stands still until a test advances it. Thread-safe.
//
//   ManualClock clock;
//   clock.Advance(absl::Seconds(2));

#ifndef SSL_BASE_TESTING_MANUAL_CLOCK_H_
#define SSL_BASE_TESTING_MANUAL_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ssl/base/clock.h"

namespace ssl {

class ManualClock : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::UnixEpoch());

  absl::Time Now() override;
  void Advance(absl::Duration duration);

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ssl

#endif  // SSL_BASE_TESTING_MANUAL_CLOCK_H_
