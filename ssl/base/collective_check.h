// SPDX-License-Identifier: Apache-2.0
//
// For collective operations where a Status cannot be returned: in autograd functions, in an optimizer's step. The
// exception passes through LibTorch, and GuardTorch (torch_guard.h) returns the Status that it carries.
#ifndef SSL_BASE_COLLECTIVE_CHECK_H_
#define SSL_BASE_COLLECTIVE_CHECK_H_

#include <c10/util/Exception.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// LibTorch's type of such an error, with the Status itself: code, message and details. Autograd keeps the exception
// object while it unwinds. what() is the message without details.
class CollectiveError : public c10::DistBackendError {
 public:
  explicit CollectiveError(absl::Status status);

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// Throws CollectiveError, "<what>: <message>", unless `status` is OK. Thread-safe.
void CheckCollective(const absl::Status& status, absl::string_view what);

}  // namespace ssl

#endif  // SSL_BASE_COLLECTIVE_CHECK_H_
