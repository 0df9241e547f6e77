// SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for another one: it spins first, and sleeps when that takes too long.
#ifndef SSL_OPENMP_WAITING_H_
#define SSL_OPENMP_WAITING_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ssl {

// Sleeps while `word` is `value`, or less long: callers look again.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t value);
// Wakes up to `count` threads that sleep on `word`.
void WakeSleepers(std::atomic<uint32_t>* word, uint32_t count);

// How long the threads of a team spin. Thread-safe.
class Patience {
 public:
  // Nobody spins where OMP_WAIT_POLICY is passive.
  Patience();

  // Spins until ready() is true, and returns whether it is. False after 5 ms, or after 20 us on a machine where a
  // thread of this team lost its core a moment ago.
  template <typename Ready>
  bool SpinUntil(const Ready& ready) {
    if (!spins_) return ready();
    const int64_t begin = Now();
    for (int64_t last = begin;;) {
      for (int look = 0; look < kLooks; ++look) {
        if (ready()) return true;
        __builtin_ia32_pause();
      }
      const int64_t now = Now();
      if (now - last > kLostCore) busy_until_.store(now + kBusyFor, std::memory_order_relaxed);
      const bool busy = now < busy_until_.load(std::memory_order_relaxed);
      if (now - begin > (busy ? kBusySpin : kSpin)) return ready();
      last = now;
    }
  }

 private:
  static constexpr int kLooks = 16;  // between two looks at the clock
  // Nanoseconds.
  static constexpr int64_t kSpin = 5'000'000;
  static constexpr int64_t kBusySpin = 20'000;
  static constexpr int64_t kLostCore = 100'000;
  static constexpr int64_t kBusyFor = 100'000'000;

  static int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  const bool spins_;
  std::atomic<int64_t> busy_until_{0};
};

}  // namespace ssl

#endif  // SSL_OPENMP_WAITING_H_
