// SPDX-License-Identifier: Apache-2.0
//
// Time as an argument, so that tests move it by hand (ssl/base/testing/manual_clock.h).
// The real clock never goes back: it is the wall time at its first use plus monotonic time
// since, so differences are durations and values are still dates. Thread-safe.
//
//   const absl::Time start = clock.Now();
//   Step();
//   const double step_s = absl::ToDoubleSeconds(clock.Now() - start);

#ifndef SSL_BASE_CLOCK_H_
#define SSL_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace ssl {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;

  // The clock of the machine; lives as long as the process.
  static Clock& Real();
};

}  // namespace ssl

#endif  // SSL_BASE_CLOCK_H_
