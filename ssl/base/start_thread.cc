// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/start_thread.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"

namespace ssl {

absl::Status NoThreadError(absl::string_view what, const std::exception& error) {
  const absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("no thread for ", what, ": ", error.what(),
                   "; raise the limit of processes (ulimit -u, or pids.max of a container), or free memory"));
  return WithDetail(status, kDetailCause, kCauseMemory);
}

absl::Status StartThread(absl::string_view what, std::function<void()> run, std::thread* thread) {
  try {
    *thread = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return NoThreadError(what, error);
  }
  return absl::OkStatus();
}

}  // namespace ssl
