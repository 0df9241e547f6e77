// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/dataset_path.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/config/reader.h"
#include "ssl/config/unexpanded_text.h"
#include "ssl/config/yaml.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

constexpr absl::string_view kLabelPaths = "LABEL_PATHS";

// Names of data sets are compared without regard to case, as VISSL's own spellings vary.
const std::string* FindFolder(const std::string& name, const Registries& registries) {
  for (const auto& [known, folder] : registries.dataset_folders) {
    if (absl::EqualsIgnoreCase(known, name)) return &folder;
  }
  return nullptr;
}

// What the catalog says of `name`; "" when it does not know the name.
absl::StatusOr<std::string> FindInCatalog(const std::string& catalog, const std::string& name, const std::string& split,
                                          bool labels, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(catalog));
  SSL_ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(text, catalog, nullptr));
  const auto entry = std::find_if(root.entries().begin(), root.entries().end(), [&](const ConfigNode::Entry& known) {
    return absl::EqualsIgnoreCase(known.first, name);
  });
  if (entry == root.entries().end()) return std::string();
  const ConfigNode* paths = entry->second.Find(split);
  const size_t place = labels ? 1 : 0;
  if (paths == nullptr || paths->items().size() != 2 || paths->items()[place].text().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(entry->second.location().ToString(), ": data set '", name,
                                                   "' has no paths [images, labels] for ", split));
  }
  const ConfigNode& path = paths->items()[place];
  const std::string unexpanded = UnexpandedIn(path.text());
  if (unexpanded.empty()) return path.text();
  return absl::InvalidArgumentError(
      absl::StrCat(path.location().ToString(), ": the path of data set '", name, "' ", unexpanded));
}

// "a, b", of a catalog that FindInCatalog has read.
std::string NamesInCatalog(const std::string& catalog, FileSystem& file_system) {
  const absl::StatusOr<std::string> text = file_system.Read(catalog);
  if (!text.ok()) return "";
  const absl::StatusOr<ConfigNode> root = ParseYaml(*text, catalog, nullptr);
  if (!root.ok()) return "";
  return absl::StrJoin(root->entries(), ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
}

// YAML and shells read some names otherwise than they stand there.
absl::Status CheckPath(const std::string& path, const std::string& place) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, " has an empty path: a variable of the shell may be unset; a name that YAML reads otherwise, such as ",
        "null, stands in quotes: ['null']"));
  }
  const std::string unexpanded = UnexpandedIn(path);
  return unexpanded.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat(place, " ", unexpanded));
}

}  // namespace

absl::StatusOr<std::string> FindDatasetPath(absl::string_view key, const std::vector<std::string>& paths,
                                            const std::vector<std::string>& below, const DataSplitOptions& options,
                                            const ConfigNode& data_split, const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckSingle(key, paths, data_split, context));
  SSL_RETURN_IF_ERROR(CheckSingle("DATASET_NAMES", options.dataset_names, data_split, context));
  const std::string place = SplitKey(data_split, context.config, key);
  if (!paths.empty()) {
    SSL_RETURN_IF_ERROR(CheckPath(paths.front(), place));
    return paths.front();
  }
  if (options.dataset_names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(place, " and DATASET_NAMES are empty, expected one of them"));
  }
  const std::string& name = options.dataset_names.front();
  DataOptions data;
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("DATA"), "config.DATA", UnknownKeys::kIgnore, &data));
  if (!data.dataset_catalog.empty()) {
    const absl::StatusOr<std::string> path = FindInCatalog(
        data.dataset_catalog, name, options.split == "test" ? "val" : "train", key == kLabelPaths, context.file_system);
    if (!path.ok()) return Annotate(path.status(), "config.DATA.DATASET_CATALOG");
    if (!path->empty()) return path;
  }
  const std::string* folder = FindFolder(name, context.registries);
  const ConfigNode* names = data_split.Find("DATASET_NAMES");
  // The name that nobody wrote says nothing to whoever has left out the paths.
  if (folder == nullptr && (names == nullptr || names->location().file.empty())) {
    const bool are_labels = key == kLabelPaths;
    return absl::InvalidArgumentError(absl::StrCat(place, " is empty, expected ",
                                                   are_labels ? "the file with the labels" : "where the data lies",
                                                   ", as ", key, are_labels ? "=[labels.npy]" : "=[photos]"));
  }
  if (folder == nullptr) {
    const std::string catalog = data.dataset_catalog.empty()
                                    ? "config.DATA.DATASET_CATALOG"
                                    : absl::StrCat("one of the names in ", data.dataset_catalog, ": ",
                                                   NamesInCatalog(data.dataset_catalog, context.file_system));
    return absl::InvalidArgumentError(absl::StrCat(place, " is empty and no folder is known for DATASET_NAMES [", name,
                                                   "]; set ", key, " to where the data lies, or ", catalog));
  }
  for (const std::string& part : below) {
    const std::string path = part.empty() ? *folder : absl::StrCat(*folder, "/", part);
    if (context.file_system.Exists(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat(place, " is empty and the folder of data set '", name, "', ", *folder,
                                          ", has no ", absl::StrJoin(below, " or ")));
}

std::string AdviseSource(const std::string& path, const ConfigNode& data_split, const BuildContext& context) {
  const auto advise = [&](absl::string_view source, absl::string_view what) {
    return absl::StrCat("; ", SplitPath(data_split, context.config), ".DATA_SOURCES=[", source, "] reads ", what);
  };
  if (context.file_system.IsDirectory(path)) return advise("disk_folder", "a folder of images");
  if (absl::EndsWithIgnoreCase(path, ".tar")) return advise("tar_shards", "tar files");
  if (absl::EndsWithIgnoreCase(path, ".npy")) {
    return absl::StrCat(advise("npy_images", "an array of images"), ", and [disk_filelist] one of paths");
  }
  for (const char* archive : {".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip"}) {
    if (absl::EndsWithIgnoreCase(path, archive)) return "; unpack it: archives are read as .tar alone";
  }
  return advise("disk_filelist", "a list of paths");
}

absl::Status CheckSingle(absl::string_view key, const std::vector<std::string>& values, const ConfigNode& data_split,
                         const BuildContext& context) {
  if (values.size() <= 1) return absl::OkStatus();
  const std::string quoted = absl::EndsWith(key, "_PATHS") ? absl::StrCat("; a path with a comma stands in quotes: ['",
                                                                          absl::StrJoin(values, ","), "']")
                                                           : "";
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, key), " is [",
                                                 absl::StrJoin(values, ", "), "], expected one, as DATA_SOURCES has ",
                                                 "one entry", quoted));
}

}  // namespace ssl
