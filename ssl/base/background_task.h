// SPDX-License-Identifier: Apache-2.0
//
// One piece of work at a time on a thread of its own, whose outcome is asked for later.
//
//   BackgroundTask task;
//   SSL_RETURN_IF_ERROR(task.Start([] { return WriteFiles(); }));
//   ...
//   SSL_RETURN_IF_ERROR(task.Finish());
#ifndef SSL_BASE_BACKGROUND_TASK_H_
#define SSL_BASE_BACKGROUND_TASK_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace ssl {

// Used by one thread.
class BackgroundTask {
 public:
  // Waits for the work; what it returned is lost.
  ~BackgroundTask();

  // FailedPrecondition when a task was started and not finished; ResourceExhausted when the system has no thread left.
  absl::Status Start(std::function<absl::Status()> work);

  // Started, and Finish was not called yet.
  bool started() const { return thread_.joinable(); }
  // Finish would not wait.
  bool done() const { return done_; }

  // Waits for the work and returns what it returned; OK when nothing was started.
  absl::Status Finish();

 private:
  std::thread thread_;
  absl::Status status_;  // written by the thread before it is done
  std::atomic<bool> done_{true};
};

}  // namespace ssl

#endif  // SSL_BASE_BACKGROUND_TASK_H_
