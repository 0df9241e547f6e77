// SPDX-License-Identifier: Apache-2.0
//
// Runs operations one after the other, on a thread of its own that the first one starts. Each runs with LibTorch's
// thread-local state of its Post, so that a profiler of the posting thread sees it.
#ifndef SSL_DISTRIBUTED_OPERATION_QUEUE_H_
#define SSL_DISTRIBUTED_OPERATION_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace ssl {

// Used by one thread. What operations do happens before what follows the return of their future, or of Drain.
class OperationQueue {
 public:
  OperationQueue() = default;
  // Waits for the operation that runs; those behind it are dropped.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // `operation` throws nothing. ResourceExhausted, at once, when the system has no thread left.
  std::future<absl::Status> Post(std::function<absl::Status()> operation);

  // Returns when everything posted has run.
  void Drain();

 private:
  using Task = std::packaged_task<absl::Status()>;

  void Run();

  std::mutex mutex_;  // of what follows but the thread
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one may be running
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_OPERATION_QUEUE_H_
