// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/folder_in_run.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/register_component.h"

namespace ssl {

absl::Status CheckFolderInRun(const ConfigNode& params, absl::string_view key, const std::string& folder,
                              const BuildContext& context) {
  const std::vector<std::string> parts = absl::StrSplit(folder, '/', absl::SkipEmpty());
  const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
  const auto first = std::find_if(parts.begin(), parts.end(), [](const std::string& part) { return part != "."; });
  const bool is_run = first == parts.end();
  if (!is_run && !leaves && folder[0] != '/' && *first != "checkpoints") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, key, context), " is '", folder,
                                                 "', expected a directory inside the run's, but not in checkpoints, ",
                                                 "such as drawings"));
}

absl::StatusOr<OutputFolder> FolderInRun(const BuildContext& context, absl::string_view what, absl::string_view name) {
  SSL_RETURN_IF_ERROR(PathInRun(context, what, name).status());
  return OutputFolder{context.run_directory, std::string(name)};
}

}  // namespace ssl
