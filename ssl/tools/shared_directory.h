// SPDX-License-Identifier: Apache-2.0
//
// Whether a path leads all ranks to one directory: on several hosts it may name a disk of each host's own.
#ifndef SSL_TOOLS_SHARED_DIRECTORY_H_
#define SSL_TOOLS_SHARED_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Every rank looks for a file that rank 0 makes there, and removes again. FailedPrecondition, naming rank and host,
// where it is not found; Aborted on the other ranks. Rank 0's errors of writing. Nothing is done in a world of one.
// Collective.
absl::Status CheckSharedDirectory(const std::string& path, FileSystem& file_system, Communicator& communicator);

// Whether `name` is that of such a file: a process that was killed meanwhile has left it.
bool IsSharedMark(absl::string_view name);

}  // namespace ssl

#endif  // SSL_TOOLS_SHARED_DIRECTORY_H_
