// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/moved_run.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/core/checkpoint_names.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/engines/run_files.h"

namespace ssl {
namespace {

namespace fs = std::filesystem;

bool IsOfACommand(const fs::path& file, const std::vector<std::string>& engines) {
  const std::string name = file.filename().string();
  return name == CommandConfigFile(kTrainCommand) || IsEvaluationFile(name, engines);
}

// A folder of that name alone, or a lock, may be anybody's.
bool HoldsCheckpoints(const std::string& folder, FileSystem& file_system) {
  const absl::StatusOr<std::vector<std::string>> names = file_system.List(CheckpointDirectory(folder));
  const auto is_checkpoint = [](const std::string& name) { return IterationOf(name) >= 0; };
  return names.ok() && std::any_of(names->begin(), names->end(), is_checkpoint);
}

bool IsSamePlace(const fs::path& one, const fs::path& other) {
  std::error_code unknown;  // then the paths are compared as they are
  return fs::weakly_canonical(fs::absolute(one), unknown) == fs::weakly_canonical(fs::absolute(other), unknown);
}

}  // namespace

std::string TakeDirectoryOfFile(const std::string& file, const std::vector<std::string>& engines,
                                FileSystem& file_system, ConfigNode* root) {
  constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
  const ConfigNode* node = root->FindPath(kDirectory);
  if (!IsOfACommand(file, engines) || node == nullptr || node->location().file != file) return "";
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (IsSamePlace(folder, node->text()) || !HoldsCheckpoints(folder, file_system)) return "";
  std::string told = absl::StrCat(node->location().ToString(), ": ", kDirectory, " is ", folder,
                                  ", where this file lies with its run, and not ", node->text(), ", as it says");
  ConfigNode directory = ConfigNode::FromString(folder);
  directory.Relocate(node->location());
  root->SetPath(kDirectory, std::move(directory));
  return told;
}

}  // namespace ssl
