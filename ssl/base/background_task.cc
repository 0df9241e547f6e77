// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/background_task.h"

#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ssl {

BackgroundTask::~BackgroundTask() { Finish().IgnoreError(); }

absl::Status BackgroundTask::Start(std::function<absl::Status()> work) {
  if (started()) return absl::FailedPreconditionError("a background task is running already");
  done_ = false;
  try {
    thread_ = std::thread([this, work = std::move(work)] {
      status_ = work();
      done_ = true;
    });
  } catch (const std::system_error& error) {
    done_ = true;
    return absl::ResourceExhaustedError(absl::StrCat("no thread for a background task: ", error.what()));
  }
  return absl::OkStatus();
}

absl::Status BackgroundTask::Finish() {
  if (!started()) return absl::OkStatus();
  thread_.join();
  return std::exchange(status_, absl::OkStatus());
}

}  // namespace ssl
