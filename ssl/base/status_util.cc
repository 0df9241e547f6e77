// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/status_util.h"

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {

absl::Status Annotate(absl::Status status, absl::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

absl::Status BrokenInvariantError(absl::string_view file, int line, absl::string_view condition,
                                  absl::string_view message) {
  return absl::InternalError(absl::StrCat(file, ":", line, ": ", message, " (", condition, ")"));
}

}  // namespace ssl
