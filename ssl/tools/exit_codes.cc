// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/exit_codes.h"

#include <cerrno>
#include <string>

#include "absl/strings/numbers.h"
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

std::string AdviceOn(const absl::Status& status) {
  const int exit_code = ExitCodeOf(status);
  if (exit_code == kExitMemory) {
    return "; a smaller config.DATA.TRAIN.BATCHSIZE_PER_REPLICA or smaller crops take less, and `ulimit -v` may limit "
           "this process; earlier checkpoints are intact";
  }
  int error = 0;
  if (exit_code != kExitStorage || !absl::SimpleAtoi(DetailOf(status, kDetailErrno), &error)) return "";
  if (error == EFBIG) return "; `ulimit -f` limits the size of a file; earlier checkpoints are intact";
  if (error != ENOSPC && error != EDQUOT) return "";
  return "; free some space there, choose another config.CHECKPOINT.DIR, or keep fewer checkpoints by "
         "config.CHECKPOINT.KEEP_LAST; earlier checkpoints are intact";
}

}  // namespace ssl
