// SPDX-License-Identifier: Apache-2.0
//
// A request to stop that signal handlers, hooks and threads set and the loop reads at a step
// boundary. Request is async-signal-safe (one lock-free atomic); the most urgent reason is
// kept. The owner outlives all users. Thread-safe.
//
//   StopToken stop;
//   stop.Request(kStopTerminate);            // in a signal handler
//   if (stop.requested()) { Save(); return; }  // in the loop

#ifndef SSL_BASE_STOP_TOKEN_H_
#define SSL_BASE_STOP_TOKEN_H_

#include <atomic>

namespace ssl {

// Reasons order by urgency, so that ranks can agree by a maximum.
inline constexpr int kStopNone = 0;
inline constexpr int kStopUser = 1;       // a hook or the host asked, e.g. early stopping
inline constexpr int kStopTerminate = 2;  // SIGTERM, SIGUSR1: preemption or time limit
inline constexpr int kStopError = 3;      // the run cannot go on

class StopToken {
 public:
  // A reason of kStopNone or below is ignored.
  void Request(int reason) noexcept;
  bool requested() const noexcept { return reason() != kStopNone; }
  int reason() const noexcept { return reason_.load(std::memory_order_acquire); }

 private:
  static_assert(std::atomic<int>::is_always_lock_free, "Request runs in signal handlers");
  std::atomic<int> reason_{kStopNone};
};

}  // namespace ssl

#endif  // SSL_BASE_STOP_TOKEN_H_
