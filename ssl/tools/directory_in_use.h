// SPDX-License-Identifier: Apache-2.0
//
// Whether what refuses the start of a training is another training in its directory. Who starts the same command twice
// finds the first one's port taken, and one who starts it with other ranks finds its checkpoints: neither is a mistake
// in the command, and the way out is the same as for a directory that is found locked.
#ifndef SSL_TOOLS_DIRECTORY_IN_USE_H_
#define SSL_TOOLS_DIRECTORY_IN_USE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Unavailable, with the directory and the process that uses it, where `root` trains, or estimates how long that takes,
// and another process trains in its CHECKPOINT.DIR. Not to be asked by a process that trains there itself. Changes
// nothing there. OK for a process that is not to be seen from here, as on a file system that keeps locks to each host.
absl::Status CheckNotInUse(const ConfigNode& root);

// The same of a sweep that is up, whose first run `first` is: between two of its runs none of them is.
absl::Status CheckSweepNotInUse(const ConfigNode& first);

// As long as it lives, CheckSweepNotInUse fails in other processes. Makes the directory of `first`. Null where nothing
// is trained.
absl::StatusOr<std::unique_ptr<FileLock>> LockSweep(const ConfigNode& first);

// `refusal`, or that error where the refusal is of a mistake (exit code 2).
absl::Status UnlessInUse(const absl::Status& refusal, const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_TOOLS_DIRECTORY_IN_USE_H_
