// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/errno_status.h"

#include <errno.h>

#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/error_detail.h"

namespace ssl {
namespace {

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // a limit of file sizes, such as ulimit -f
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EIO:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::ErrnoToStatusCode(error_number);
  }
}

}  // namespace

absl::Status ErrnoStatus(int error_number, absl::string_view operation, absl::string_view path) {
  const std::string message =
      absl::StrCat("file ", path, ": ", operation, " failed: ", std::generic_category().message(error_number),
                   " (errno ", error_number, ")");
  absl::Status status =
      WithDetail(absl::Status(CodeOf(error_number), message), kDetailErrno, absl::StrCat(error_number));
  return error_number == ENOMEM ? WithDetail(std::move(status), kDetailCause, kCauseMemory) : status;
}

}  // namespace ssl
