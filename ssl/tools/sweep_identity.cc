// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/sweep_identity.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kWayOut[] =
    "another config.CHECKPOINT.DIR begins a sweep of its own; removing the directory makes room for it here";

std::string File(const std::string& directory) { return absl::StrCat(directory, "/sweep_choices.json"); }

// What a run leaves behind first, or an evaluation in the end. A start that failed before leaves neither.
bool HoldsARun(const std::string& directory, FileSystem& file_system) {
  return file_system.Exists(absl::StrCat(directory, "/", CommandConfigFile(kTrainCommand))) ||
         file_system.Exists(CheckpointDirectory(directory)) ||
         file_system.Exists(absl::StrCat(directory, "/results.json"));
}

absl::StatusOr<std::vector<std::string>> ReadChoices(const std::string& directory, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(File(directory)));
  // JSON is a subset of YAML.
  SSL_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, File(directory), nullptr));
  std::vector<std::string> choices;
  for (const ConfigNode& item : node.items()) choices.push_back(item.text());
  return choices;
}

}  // namespace

absl::Status CheckRunIdentity(const std::string& directory, const std::vector<std::string>& choices,
                              FileSystem& file_system) {
  if (!file_system.Exists(File(directory))) {
    if (!HoldsARun(directory, file_system)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(directory,
                                                   " holds a run that no sweep has made, expected the one of ",
                                                   absl::StrJoin(choices, " "), "; ", kWayOut));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> found, ReadChoices(directory, file_system));
  if (found == choices || !HoldsARun(directory, file_system)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(directory, " is the run of ", absl::StrJoin(found, " "),
                                                 " of another sweep, expected ", absl::StrJoin(choices, " "), "; ",
                                                 kWayOut));
}

absl::Status WriteRunIdentity(const std::string& directory, const std::vector<std::string>& choices,
                              FileSystem& file_system) {
  if (HoldsARun(directory, file_system) && file_system.Exists(File(directory))) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(file_system.CreateDirectories(directory));
  return WriteFileAtomically(file_system, File(directory), ToJson(ConfigNode::FromStrings(choices)));
}

}  // namespace ssl
