// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/background_task.h"

#include <utility>

#include "ssl/base/start_thread.h"

namespace ssl {

BackgroundTask::~BackgroundTask() { Finish().IgnoreError(); }

absl::Status BackgroundTask::Start(std::function<absl::Status()> work) {
  if (started()) return absl::FailedPreconditionError("a background task is running already");
  done_ = false;
  const auto run = [this, work = std::move(work)] {
    status_ = work();
    done_ = true;
  };
  const absl::Status status = StartThread("a background task", run, &thread_);
  if (!status.ok()) done_ = true;
  return status;
}

absl::Status BackgroundTask::Finish() {
  if (!started()) return absl::OkStatus();
  thread_.join();
  return std::exchange(status_, absl::OkStatus());
}

}  // namespace ssl
