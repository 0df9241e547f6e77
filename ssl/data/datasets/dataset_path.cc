// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/dataset_path.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

// Names of data sets are compared without regard to case, as VISSL's own spellings vary.
const std::string* FindFolder(const std::string& name, const Registries& registries) {
  for (const auto& [known, folder] : registries.dataset_folders) {
    if (absl::EqualsIgnoreCase(known, name)) return &folder;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::string> FindDatasetPath(absl::string_view key, const std::vector<std::string>& paths,
                                            const std::vector<std::string>& below, const DataSplitOptions& options,
                                            const ConfigNode& data_split, const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckSingle(key, paths, data_split, context));
  SSL_RETURN_IF_ERROR(CheckSingle("DATASET_NAMES", options.dataset_names, data_split, context));
  if (!paths.empty()) return paths.front();

  const std::string place = SplitKey(data_split, context.config, key);
  if (options.dataset_names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(place, " and DATASET_NAMES are empty, expected one of them"));
  }
  const std::string& name = options.dataset_names.front();
  const std::string* folder = FindFolder(name, context.registries);
  if (folder == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(place, " is empty and no folder is known for DATASET_NAMES [", name,
                                                   "]; set ", key, " to where the data lies"));
  }
  for (const std::string& part : below) {
    const std::string path = part.empty() ? *folder : absl::StrCat(*folder, "/", part);
    if (context.file_system.Exists(path)) return path;
  }
  return absl::NotFoundError(absl::StrCat(place, " is empty and the folder of data set '", name, "', ", *folder,
                                          ", has no ", absl::StrJoin(below, " or ")));
}

absl::Status CheckSingle(absl::string_view key, const std::vector<std::string>& values, const ConfigNode& data_split,
                         const BuildContext& context) {
  if (values.size() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, key), " is [",
                                                 absl::StrJoin(values, ", "), "], expected one: this program supports ",
                                                 "one data source at a time"));
}

}  // namespace ssl
