// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/folder_in_run.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/register_component.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

// What programs leave in a run's directory, beside folders; hooks and sinks say themselves what they leave.
constexpr const char* kFilesOfPrograms[] = {".lock",        "failure.json",       "log.txt",
                                            "results.json", "sweep_choices.json", "train_config.yaml"};

bool IsFileOfRun(const std::string& name, const Registries& registries) {
  if (std::find(std::begin(kFilesOfPrograms), std::end(kFilesOfPrograms), name) != std::end(kFilesOfPrograms)) {
    return true;
  }
  for (const auto* components : {&registries.hook_components, &registries.sink_components}) {
    for (const auto& [_, component] : *components) {
      const std::vector<std::string> left = component.make_options()->leaves();
      if (std::find(left.begin(), left.end(), name) != left.end()) return true;
    }
  }
  return false;
}

// Of the parts of the way to `folder`, the path of the first that is a file; "" for none.
std::string FileOnTheWay(const std::vector<std::string>& parts, const BuildContext& context) {
  std::string path = context.run_directory;
  if (path.empty()) return "";
  for (const std::string& part : parts) {
    absl::StrAppend(&path, "/", part);
    if (!context.file_system.Exists(path)) return "";
    if (!context.file_system.IsDirectory(path)) return path;
  }
  return "";
}

// What has the place of a file; "" when one or nothing has it.
std::string WhatInPlaceOf(const std::string& path, FileSystem& file_system) {
  if (!CheckNoLink(path).ok()) return "symbolic link";
  if (!file_system.Exists(path)) return "";
  if (file_system.IsDirectory(path)) return "directory";
  return absl::IsInvalidArgument(file_system.OpenRead(path).status()) ? "pipe or device" : "";
}

std::vector<std::string> PartsOf(absl::string_view folder) {
  std::vector<std::string> parts = absl::StrSplit(folder, '/', absl::SkipEmpty());
  parts.erase(std::remove(parts.begin(), parts.end(), "."), parts.end());
  return parts;
}

}  // namespace

absl::Status CheckFolderInRun(const ConfigNode& params, absl::string_view key, const std::string& folder,
                              const BuildContext& context) {
  const auto refused = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, key, context), " is '", folder, "', ", why...));
  };
  const std::vector<std::string> parts = PartsOf(folder);
  const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (parts.empty() || leaves || folder[0] == '/' || parts[0] == "checkpoints") {
    return refused("expected a directory inside the run's, but not in checkpoints, such as drawings");
  }
  if (IsFileOfRun(parts[0], context.registries)) {
    return refused("but ", parts[0], " is a file of the run, expected another name, such as drawings");
  }
  const std::string file = FileOnTheWay(parts, context);
  if (file.empty()) return absl::OkStatus();
  return refused("but ", file, " is a file, expected a folder or nothing there: move it away, or give another name");
}

absl::StatusOr<std::string> FileInRun(const BuildContext& context, absl::string_view what, absl::string_view name) {
  SSL_ASSIGN_OR_RETURN(std::string path, PathInRun(context, what, name));
  const std::string other = WhatInPlaceOf(path, context.file_system);
  if (other.empty()) return path;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " writes a file in whose place is the ", other, " ", path, ": move it away"));
}

absl::StatusOr<OutputFolder> FolderInRun(const BuildContext& context, absl::string_view what, absl::string_view name) {
  SSL_RETURN_IF_ERROR(PathInRun(context, what, name).status());
  const std::string file = FileOnTheWay(PartsOf(name), context);
  if (file.empty()) return OutputFolder{context.run_directory, std::string(name)};
  return absl::InvalidArgumentError(
      absl::StrCat(what, " writes into a folder in whose place is the file ", file, ": move it away"));
}

}  // namespace ssl
