// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/exit_codes.h"

namespace ssl {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitFinished;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return kExitConfiguration;
    case absl::StatusCode::kDataLoss:
      return kExitData;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return kExitStorage;
    default:
      return kExitFailed;
  }
}

}  // namespace ssl
