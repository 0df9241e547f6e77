// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace ssl {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override { return wall_start_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_start_); }

 private:
  const absl::Time wall_start_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_start_ = std::chrono::steady_clock::now();
};

}  // namespace

Clock& Clock::Real() {
  static RealClock* clock = new RealClock;  // usable while the process ends
  return *clock;
}

}  // namespace ssl
