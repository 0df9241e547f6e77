// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/find_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFolder[] = "configs/config";
constexpr char kPretrainFolder[] = "pretrain";
// A search directory may be anything that a user names, "/" included.
constexpr size_t kMaxListedFiles = 20000;

bool IsFile(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !error && fs::exists(status) && !fs::is_directory(status);
}

// `path` or `path`.yaml, whichever is a file; "" when neither is.
std::string FileAt(const fs::path& path) {
  if (IsFile(path)) return path.string();
  const fs::path with_suffix = path.string() + ".yaml";
  return IsFile(with_suffix) ? with_suffix.string() : "";
}

// Names of the YAML files below `folder`, relative to it and without suffix, sorted.
std::vector<std::string> ListNames(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  while (!error && entry != fs::recursive_directory_iterator() && names.size() < kMaxListedFiles) {
    if (entry->path().extension() == ".yaml") {
      names.push_back(entry->path().lexically_relative(folder).replace_extension().string());
    }
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The listed name nearest to `name` as a whole, or else in its last component.
std::string NearestFile(absl::string_view name, const std::vector<std::string>& names) {
  const std::string wanted(absl::StripSuffix(name, ".yaml"));
  const std::string nearest = NearestName(wanted, names);
  if (!nearest.empty()) return nearest;
  std::vector<std::string> last_parts;
  for (const std::string& path : names) last_parts.push_back(fs::path(path).filename().string());
  const std::string last = NearestName(fs::path(wanted).filename().string(), last_parts);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!last.empty() && last_parts[i] == last) return names[i];
  }
  return "";
}

absl::Status FileNotFound(absl::string_view name, const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    const std::vector<std::string> listed = ListNames(folder);
    names.insert(names.end(), listed.begin(), listed.end());
  }
  const std::string nearest = NearestFile(name, names);
  return absl::NotFoundError(
      absl::StrCat("config file '", name, "' is not found",
                   folders.empty() ? "" : absl::StrCat(", neither as a path nor below ", absl::StrJoin(folders, ", ")),
                   nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
}

}  // namespace

absl::StatusOr<std::string> FindConfigFile(absl::string_view name, const std::vector<std::string>& search_dirs) {
  const fs::path relative{std::string(name)};
  if (std::string found = FileAt(relative); !found.empty()) return found;
  std::vector<std::string> folders;
  if (relative.is_relative()) {
    for (const std::string& dir : search_dirs) {
      folders.push_back((fs::path(dir) / kConfigFolder).string());
    }
  }
  for (const std::string& folder : folders) {
    for (const fs::path& base : {fs::path(folder), fs::path(folder) / kPretrainFolder}) {
      if (std::string found = FileAt(base / relative); !found.empty()) return found;
    }
  }
  return FileNotFound(name, folders);
}

}  // namespace ssl
