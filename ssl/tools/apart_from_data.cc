// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/apart_from_data.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

namespace fs = std::filesystem;

constexpr char kDirectory[] = "config.CHECKPOINT.DIR";
constexpr char kFolders[] = "disk_folder";

fs::path Resolved(const std::string& path) {
  std::error_code unknown;  // then the paths are compared as they are
  const fs::path absolute = fs::absolute(path, unknown);
  const fs::path resolved = fs::weakly_canonical(absolute, unknown);
  const fs::path& result = unknown ? absolute : resolved;
  return result.has_filename() ? result : result.parent_path();
}

bool IsIn(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

// Of what lies in `folder`.
bool IsPassedOver(const fs::path& path, const fs::path& folder) {
  const fs::path below = path.lexically_relative(folder);
  const auto is_hidden = [](const fs::path& name) { return name != "." && absl::StartsWith(name.string(), "."); };
  return std::any_of(below.begin(), below.end(), is_hidden);
}

// "" where the two are apart.
std::string Entanglement(const std::string& run, const std::string& images) {
  const fs::path run_path = Resolved(run);
  const fs::path images_path = Resolved(images);
  if (run_path == images_path) {
    return absl::StrCat("the run directory ", run, " is the folder of images ", images,
                        ", so that files of the run would count as images or classes");
  }
  if (IsIn(run_path, images_path) && !IsPassedOver(run_path, images_path)) {
    return absl::StrCat("the run directory ", run, " lies in the folder of images ", images,
                        ", so that files of the run would count as images or classes");
  }
  return "";
}

absl::Status CheckSplit(const std::string& run, const ConfigNode& root, absl::string_view split) {
  const ConfigNode& data = root.Section(split);
  const ConfigNode* paths = data.Find("DATA_PATHS");
  const ConfigNode* sources = data.Find("DATA_SOURCES");
  // A test set is read as the training set is, where nothing says otherwise.
  if (sources == nullptr || sources->items().empty()) sources = root.FindPath("config.DATA.TRAIN.DATA_SOURCES");
  if (sources == nullptr || paths == nullptr) return absl::OkStatus();
  const size_t count = std::min(sources->items().size(), paths->items().size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& images = paths->items()[i].text();
    if (sources->items()[i].text() != kFolders || images.empty()) continue;  // who reads an empty path refuses it
    const std::string entanglement = Entanglement(run, images);
    if (entanglement.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(paths->location().ToString(), ": ", split, ".DATA_PATHS: ", entanglement, "; ", kDirectory,
                     " chooses another: one outside of it, or one whose name begins with "
                     "a dot, such as .runs, which is passed over; a run that is there already "
                     "may be moved"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckApartFromData(const ConfigNode& root) {
  const std::string run = root.FindPath(kDirectory)->text();
  SSL_RETURN_IF_ERROR(CheckSplit(run, root, "config.DATA.TRAIN"));
  return CheckSplit(run, root, "config.DATA.TEST");
}

}  // namespace ssl
