// SPDX-License-Identifier: Apache-2.0
//
// For collective operations where a Status cannot be returned: in autograd functions, in an optimizer's step. The
// exception passes through LibTorch, and GuardTorch (torch_guard.h) turns it into Unavailable, with kCausePeer.
#ifndef SSL_BASE_COLLECTIVE_CHECK_H_
#define SSL_BASE_COLLECTIVE_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Throws c10::DistBackendError, "<what>: <status>", unless `status` is OK. Thread-safe.
void CheckCollective(const absl::Status& status, absl::string_view what);

}  // namespace ssl

#endif  // SSL_BASE_COLLECTIVE_CHECK_H_
