// SPDX-License-Identifier: Apache-2.0
//
// Whether a run directory can be written, asked before anything is started for it.
#ifndef SSL_TOOLS_WRITABLE_DIRECTORY_H_
#define SSL_TOOLS_WRITABLE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// What a start with `root` would be refused for because of its CHECKPOINT.DIR, as CannotBeUsed: a directory that may
// not be written, or made, or something in the way of it or, of a training, of what it opens there. An evaluation
// that is not for files (run_files.h) prints what it may not write, so of that only what is in the way counts. Changes
// nothing there; what only shows when something is written, such as a full disk, is not found.
absl::Status CheckCanBeWritten(const ConfigNode& root);

// `status`, an error that was met in the run directory `path`, as what is said of it, with the key that chooses
// another. Codes other than PermissionDenied, ResourceExhausted and Unavailable become FailedPrecondition.
absl::Status CannotBeUsed(const std::string& path, const absl::Status& status);

}  // namespace ssl

#endif  // SSL_TOOLS_WRITABLE_DIRECTORY_H_
