// SPDX-License-Identifier: Apache-2.0
//
// Requests that signal handlers, hooks and threads make and the loop reads at a step boundary: to stop, of which the
// most urgent reason is kept, or to save and go on. Both are async-signal-safe (a lock-free atomic each). The owner
// outlives all users. Thread-safe.
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
inline constexpr int kStopTerminate = 2;  // SIGTERM, SIGUSR2: preemption or time limit
inline constexpr int kStopError = 3;      // the run cannot go on

class StopToken {
 public:
  // A reason of kStopNone or below is ignored.
  void Request(int reason) noexcept;
  bool requested() const noexcept { return reason() != kStopNone; }
  int reason() const noexcept { return reason_.load(std::memory_order_acquire); }

  // Asks for a checkpoint and nothing else.
  void RequestSnapshot() noexcept { snapshots_.fetch_add(1, std::memory_order_release); }
  // How often one was asked for: each loop that shares the token saves when it sees another number than last.
  unsigned snapshot_requests() const noexcept { return snapshots_.load(std::memory_order_acquire); }

 private:
  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<unsigned>::is_always_lock_free,
                "requests are made in signal handlers");
  std::atomic<int> reason_{kStopNone};
  std::atomic<unsigned> snapshots_{0};
};

}  // namespace ssl

#endif  // SSL_BASE_STOP_TOKEN_H_
