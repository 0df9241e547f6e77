// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/exit_codes.h"

#include <string>

#include "ssl/base/error_detail.h"

namespace ssl {

int ExitCodeOf(const absl::Status& status) {
  const std::string cause = DetailOf(status, kDetailCause);
  if (cause == kCauseMemory) {
    return DetailOf(status, kDetailMemory) == kMemoryOfDevice ? kExitDeviceMemory : kExitMemory;
  }
  if (cause == kCausePeer) return kExitPeer;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitFinished;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:  // a port that is taken, two processes as one rank
    case absl::StatusCode::kUnimplemented:
      return kExitConfiguration;
    case absl::StatusCode::kDataLoss:
      // With an errno (EIO) the device failed; without one, the bytes that it gave are wrong.
      return DetailOf(status, kDetailErrno).empty() ? kExitData : kExitStorage;
    case absl::StatusCode::kAborted:           // AgreeOnStatus: this rank is well, another one is not
    case absl::StatusCode::kDeadlineExceeded:  // a collective operation
      return kExitPeer;
    case absl::StatusCode::kCancelled:  // a stop was seen where there was nothing to save
      return kExitStopped;
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
