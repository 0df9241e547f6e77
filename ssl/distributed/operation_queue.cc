// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/operation_queue.h"

#include <ATen/ThreadLocalState.h>

#include <utility>

#include "ssl/base/start_thread.h"

namespace ssl {

OperationQueue::~OperationQueue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::future<absl::Status> OperationQueue::Post(std::function<absl::Status()> operation) {
  // A profiler belongs to the thread that turned it on. The state goes before the result is there: once nobody waits
  // for the operation any more, the profiler may have been turned off.
  Task task([state = at::ThreadLocalState(), operation = std::move(operation)] {
    const at::ThreadLocalStateGuard as_the_caller(state);
    return operation();
  });
  std::future<absl::Status> result = task.get_future();
  if (!thread_.joinable()) {
    const absl::Status started = StartThread(
        "collective operations", [this] { Run(); }, &thread_);
    if (!started.ok()) {
      Task failed([started] { return started; });
      result = failed.get_future();
      failed();
      return result;
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return result;
}

void OperationQueue::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty(); });
}

// A task stays in the queue while it runs, so that Drain waits for it.
void OperationQueue::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    if (closing_) return;
    Task& task = tasks_.front();
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace ssl
