// SPDX-License-Identifier: Apache-2.0
//
// A fixed number of threads that run functions in the order of Schedule. The destructor
// runs everything that was scheduled, then joins. Schedule is thread-safe and may be called
// from a running function. Functions must not throw: results and errors travel by capture.
//
//   absl::BlockingCounter done(n);
//   for (int i = 0; i < n; ++i) pool.Schedule([&, i] { Decode(i); done.DecrementCount(); });
//   done.Wait();

#ifndef SSL_BASE_THREAD_POOL_H_
#define SSL_BASE_THREAD_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace ssl {

class ThreadPool {
 public:
  // At least one thread is made.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void Schedule(std::function<void()> task);
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  void Work();
  bool HasWorkOrStops() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ssl

#endif  // SSL_BASE_THREAD_POOL_H_
