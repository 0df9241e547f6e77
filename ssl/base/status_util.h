// SPDX-License-Identifier: Apache-2.0
//
// Helpers on absl::Status that the status macros and every package share.
// All functions are pure and thread-safe.
//
//   return Annotate(status, "checkpoint /runs/a/step_10");
//   // DATA_LOSS: checkpoint /runs/a/step_10: file model.safetensors is ...

#ifndef SSL_BASE_STATUS_UTIL_H_
#define SSL_BASE_STATUS_UTIL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Returns `status` with the message "prefix: message"; code and payloads stay. OK stays OK.
absl::Status Annotate(absl::Status status, absl::string_view prefix);

// The error of a broken invariant of our own code: "file:line: message (condition)".
// Used through SSL_RET_CHECK; not for wrong user input.
absl::Status BrokenInvariantError(absl::string_view file, int line, absl::string_view condition,
                                  absl::string_view message);

}  // namespace ssl

#endif  // SSL_BASE_STATUS_UTIL_H_
