// SPDX-License-Identifier: Apache-2.0
//
// One parallel region of OpenMP: a body that is called once for each share, by any threads, and what the shares have in
// common meanwhile. OpenMP calls a share a thread: omp_get_thread_num() is the number of the share.
#ifndef SSL_OPENMP_REGION_H_
#define SSL_OPENMP_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "ssl/openmp/waiting.h"

namespace ssl {

// `for (long i = first; i != past the last; i += step)`, as OpenMP gives it to a share; step may be negative.
struct LoopPart {
  int64_t begin = 0;
  int64_t end = 0;
};
struct Loop {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
  int64_t chunk = 1;     // iterations that a share takes at a time
  bool ordered = false;  // has a block that runs iteration by iteration: AwaitTurn
};

class Region {
 public:
  using Body = void (*)(void* data);

  explicit Region(Patience* patience) : patience_(*patience) {}

  // Begins anew, as a region within the one whose share this thread runs. No share of this region may be running.
  void Begin(Body body, void* data, uint32_t shares);

  uint32_t shares() const { return shares_; }

  // Calls the body as share `number` of this thread. A share that runs meanwhile on this thread goes on afterwards.
  void RunShare(uint32_t number);

  // The region whose share this thread runs, and the number of the share; null outside of any.
  static Region* Current();
  static uint32_t CurrentShare();
  // Whether that region, or one around it, has several shares.
  static bool InParallel();

  // omp_set_num_threads: of this thread outside of any region, or of the share that it runs, which begins with its
  // caller's. 0: as many as the process begins with.
  static int Threads();
  static void SetThreads(int threads);

  // What a share calls while it runs:

  // Returns once all shares have come here. Shares that nobody has begun need a thread: a team has one for each.
  void Barrier();
  // The first share that comes to a piece of work (a loop, sections, a single block) describes it: true for that one.
  bool BeginWork(const Loop& loop);
  // The next part of the work that this share is at; false when nothing is left.
  bool TakePart(LoopPart* part);
  void EndWork();
  // Waits until all iterations ahead of this share's part have ended.
  void AwaitTurn();

 private:
  struct Work {
    Loop loop;
    int64_t next = 0;               // where the next part begins
    uint32_t parts = 0;             // taken so far
    std::atomic<uint32_t> turn{0};  // the part whose ordered block may run
    std::atomic<uint32_t> sleepers{0};
  };

  Work& CurrentWork();
  void AwaitTurn(Work* work);
  // Behind the part that this share has taken, if it has.
  void PassTurn(Work* work);
  void AwaitWord(std::atomic<uint32_t>* word, uint32_t wanted, std::atomic<uint32_t>* sleepers);

  Patience& patience_;
  Body body_ = nullptr;
  void* data_ = nullptr;
  uint32_t shares_ = 1;
  bool in_parallel_ = false;
  int threads_ = 0;  // of each share when it begins
  std::atomic<uint32_t> arrived_{0};
  std::atomic<uint32_t> phase_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Work>> works_;  // in the order in which each share comes to them
};

}  // namespace ssl

#endif  // SSL_OPENMP_REGION_H_
