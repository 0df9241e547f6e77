// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/thread_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace ssl {

ThreadPool::ThreadPool(int threads) {
  const int count = std::max(threads, 1);
  threads_.reserve(count);
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Schedule(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void ThreadPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(this, &ThreadPool::HasWorkOrStops));
      if (tasks_.empty()) return;  // stopping, and everything was run
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace ssl
