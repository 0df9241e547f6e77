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
#include "ssl/config/unexpanded_text.h"

namespace ssl {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFolder[] = "configs/config";
constexpr char kPretrainFolder[] = "pretrain";
// A search directory may be anything that a user names, "/" included.
constexpr size_t kMaxListedFiles = 20000;
// How many files of a folder a message names.
constexpr size_t kMaxNamedFiles = 4;

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
  const std::string unexpanded = UnexpandedIn(name);
  if (!unexpanded.empty()) return absl::NotFoundError(absl::StrCat("config file ", unexpanded));
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

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::Status FileIsDirectory(absl::string_view name, const fs::path& folder) {
  const std::vector<std::string> files = ListNames(folder);
  std::string hint = "no file below it ends in .yaml";
  if (!files.empty()) {
    const size_t count = std::min(files.size(), kMaxNamedFiles);
    std::vector<std::string> named;
    for (size_t i = 0; i < count; ++i) named.push_back((fs::path(std::string(name)) / files[i]).string());
    hint = absl::StrCat("expected a file, such as ", absl::StrJoin(named, ", "));
    if (files.size() > count) absl::StrAppend(&hint, " (and ", files.size() - count, " more)");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("config file '", name, "' is a directory (", folder.string(), "); ", hint));
}

}  // namespace

absl::StatusOr<std::string> FindConfigFile(absl::string_view name, const std::vector<std::string>& search_dirs) {
  if (name.empty()) {
    return absl::InvalidArgumentError("the name of the config file is empty, expected a path or a name below " +
                                      std::string(kConfigFolder) + ", such as quickstart");
  }
  const fs::path relative{std::string(name)};
  std::vector<std::string> folders;
  if (relative.is_relative()) {
    for (const std::string& dir : search_dirs) {
      folders.push_back((fs::path(dir) / kConfigFolder).string());
    }
  }
  std::vector<fs::path> bases = {""};
  for (const std::string& folder : folders) {
    bases.emplace_back(folder);
    bases.push_back(fs::path(folder) / kPretrainFolder);
  }
  for (const fs::path& base : bases) {
    if (std::string found = FileAt(base / relative); !found.empty()) return found;
  }
  // Only now: a file of a later place wins over a folder of an earlier one.
  for (const fs::path& base : bases) {
    if (IsDirectory(base / relative)) return FileIsDirectory(name, base / relative);
  }
  return FileNotFound(name, folders);
}

}  // namespace ssl
