// SPDX-License-Identifier: Apache-2.0
//
// errno values as absl::Status, one mapping for all file code. Pure, thread-safe.
//
//   if (fd < 0) return ErrnoStatus(errno, "opening", path);
//   // NOT_FOUND: file /data/x.bin: opening failed: No such file or directory (errno 2)

#ifndef SSL_IO_ERRNO_STATUS_H_
#define SSL_IO_ERRNO_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ssl {

// ENOSPC, EDQUOT -> kResourceExhausted; EACCES, EROFS, EPERM -> kPermissionDenied; ENOENT ->
// kNotFound; EIO -> kDataLoss; others as absl::ErrnoToStatusCode maps them.
absl::Status ErrnoStatus(int error_number, absl::string_view operation, absl::string_view path);

}  // namespace ssl

#endif  // SSL_IO_ERRNO_STATUS_H_
