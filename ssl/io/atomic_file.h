// SPDX-License-Identifier: Apache-2.0
//
// Replaces a small file so that a reader, a crash or a full disk sees the old content or the
// new, never a mixture: write PATH.tmp-<pid>, fsync, close, rename, fsync the directory.
// One writer per path at a time.
//
//   SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system, dir + "/LATEST", "step_100\n"));

#ifndef SSL_IO_ATOMIC_FILE_H_
#define SSL_IO_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Writes, fsyncs and closes a file that nobody reads yet; neither atomic nor its name synced.
absl::Status WriteFileDurably(FileSystem& file_system, const std::string& path, absl::string_view contents);

// On an error before the rename the old file stands and the temporary file is removed (as far
// as the disk allows). An error of the last step, the directory's fsync, means that the new
// content is visible but may not survive a power loss.
absl::Status WriteFileAtomically(FileSystem& file_system, const std::string& path, absl::string_view contents);

}  // namespace ssl

#endif  // SSL_IO_ATOMIC_FILE_H_
