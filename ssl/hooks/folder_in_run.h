// SPDX-License-Identifier: Apache-2.0
//
// Folders that options name lie inside the run's directory, so that a run leaves nothing elsewhere.
#ifndef SSL_HOOKS_FOLDER_IN_RUN_H_
#define SSL_HOOKS_FOLDER_IN_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// InvalidArgument, with file and line of `key` in `params`, unless `folder`, its value, is a path below the run's
// directory: relative, without "..", neither that directory itself nor in its checkpoints, which are removed as they
// age, and no file, neither one that is there nor one that a run leaves (metrics.json).
absl::Status CheckFolderInRun(const ConfigNode& params, absl::string_view key, const std::string& folder,
                              const BuildContext& context);

// The path of the run's file `name`. Errors begin with `what` ("hook 'phase_metrics'"): FailedPrecondition when the run
// keeps no files, InvalidArgument when something else has the place, such as a directory: else it is the first write,
// after a step or an epoch, that fails.
absl::StatusOr<std::string> FileInRun(const BuildContext& context, absl::string_view what, absl::string_view name);

// The folder `name` of the run, to be made with CreateOutputFolder. Errors begin with `what` ("hook 'profiler'"):
// FailedPrecondition when the run keeps no files, InvalidArgument when it has a file in that place.
absl::StatusOr<OutputFolder> FolderInRun(const BuildContext& context, absl::string_view what, absl::string_view name);

}  // namespace ssl

#endif  // SSL_HOOKS_FOLDER_IN_RUN_H_
