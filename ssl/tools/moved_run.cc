// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/moved_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/core/checkpoint_store.h"

namespace ssl {
namespace {

namespace fs = std::filesystem;

// The commands of a run name their configurations (ssl/engines/run_files.h).
constexpr char kConfigEnd[] = "_config.yaml";

bool IsSamePlace(const fs::path& one, const fs::path& other) {
  std::error_code unknown;  // then the paths are compared as they are
  return fs::weakly_canonical(fs::absolute(one), unknown) == fs::weakly_canonical(fs::absolute(other), unknown);
}

}  // namespace

std::string TakeDirectoryOfFile(const std::string& file, FileSystem& file_system, ConfigNode* root) {
  constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
  const ConfigNode* node = root->FindPath(kDirectory);
  if (!absl::EndsWith(file, kConfigEnd) || node == nullptr || node->location().file != file) return "";
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const bool holds_a_run =
      file_system.Exists(absl::StrCat(folder, "/.lock")) || file_system.IsDirectory(CheckpointDirectory(folder));
  if (!holds_a_run || IsSamePlace(folder, node->text())) return "";
  std::string told = absl::StrCat(node->location().ToString(), ": ", kDirectory, " is ", folder,
                                  ", where this file lies with its run, and not ", node->text(), ", as it says");
  ConfigNode directory = ConfigNode::FromString(folder);
  directory.Relocate(node->location());
  root->SetPath(kDirectory, std::move(directory));
  return told;
}

}  // namespace ssl
