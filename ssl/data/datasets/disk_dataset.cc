// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/disk_dataset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/image_folder.h"
#include "ssl/data/datasets/string_list.h"

namespace ssl {
namespace {

// Of memory for a list; that of a larger one, or of one that claims a size, grows as it is read.
constexpr int64_t kMostReserved = int64_t{1} << 30;

bool IsTest(const DataSplitOptions& split) { return split.split == "test"; }

// " in <working directory>" of a relative path, which counts from there.
std::string InWorkingDirectory(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path directory = std::filesystem::current_path(unknown);
  const bool is_relative = !unknown && std::filesystem::path(path).is_relative();
  return is_relative ? absl::StrCat(" in ", directory.string()) : "";
}

absl::string_view LastFolderAndName(absl::string_view path) {
  const size_t before_name = path.rfind('/');
  if (before_name == absl::string_view::npos || before_name == 0) return path;
  return path.substr(path.rfind('/', before_name - 1) + 1);  // npos + 1 is 0
}

}  // namespace

DiskDataset::DiskDataset(PathList paths, std::vector<int64_t> labels, EncodedImageOptions options,
                         ComparedPath compared)
    : EncodedImageDataset(paths.size(), std::move(labels), std::move(options)),
      paths_(std::move(paths)),
      compared_(compared) {}

std::string DiskDataset::SampleIdentity(int64_t index) const {
  const absl::string_view rest = paths_.Rest(index);
  return std::string(compared_ == ComparedPath::kLastFolderAndName ? LastFolderAndName(rest) : rest);
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFolder(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below =
      IsTest(split) ? std::vector<std::string>{"val", "test"} : std::vector<std::string>{"train"};
  SSL_ASSIGN_OR_RETURN(const std::string folder,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  const bool is_pattern = absl::EndsWith(folder, ".tar") && absl::StrContains(folder, "{");
  if ((context.file_system.Exists(folder) || is_pattern) && !context.file_system.IsDirectory(folder)) {
    return absl::InvalidArgumentError(absl::StrCat(
        SplitKey(data_split, context.config, "DATA_PATHS"), ": ", folder, is_pattern ? " names files" : " is a file",
        ", expected a folder that holds one for each class", AdviseSource(folder, data_split, context)));
  }
  SSL_ASSIGN_OR_RETURN(EncodedImageOptions options, ReadEncodedImageOptions(split, data_split, context));
  ScanOptions scan;
  scan.file_system = &context.file_system;
  scan.stop = context.stop;
  scan.root = options.root.get();
  absl::StatusOr<ImageFolder> scanned = ScanImageFolder(folder, scan);
  if (absl::IsNotFound(scanned.status()) && !context.file_system.Exists(folder)) {
    return absl::NotFoundError(absl::StrCat(SplitKey(data_split, context.config, "DATA_PATHS"), ": there is no folder ",
                                            folder, InWorkingDirectory(folder),
                                            ", expected one that holds a folder of images for each class"));
  }
  if (!scanned.ok()) return Annotate(scanned.status(), SplitKey(data_split, context.config, "DATA_PATHS"));
  options.passed_over = std::move(scanned->passed_over);
  options.description = folder;
  options.class_names = std::move(scanned->classes);
  return std::make_unique<DiskDataset>(std::move(scanned->paths), std::move(scanned->labels), std::move(options));
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFilelist(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below = IsTest(split) ? std::vector<std::string>{"val_images.npy", "test_images.npy"}
                                                       : std::vector<std::string>{"train_images.npy"};
  SSL_ASSIGN_OR_RETURN(const std::string list,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  if (context.file_system.IsDirectory(list) || absl::EndsWith(list, ".tar")) {
    return absl::InvalidArgumentError(absl::StrCat(
        SplitKey(data_split, context.config, "DATA_PATHS"), ": ", list,
        context.file_system.IsDirectory(list) ? " is a folder" : " is a tar file",
        ", expected a regular file with one path a line, or a .npy array of paths", AdviseSource(list, data_split, context)));
  }
  PathList paths;
  paths.Reserve(std::min(context.file_system.Size(list).value_or(0), kMostReserved));
  bool found_prefix = split.remove_img_path_prefix.empty();
  const absl::Status read = ForEachLine(context.file_system, list, [&](absl::string_view line) {
    const bool is_renamed = absl::ConsumePrefix(&line, split.remove_img_path_prefix);
    found_prefix = found_prefix || is_renamed;
    paths.Add(is_renamed ? absl::StrCat(split.new_img_path_prefix, line) : std::string(line));
  });
  if (!read.ok()) return Annotate(read, SplitKey(data_split, context.config, "DATA_PATHS"));
  if (paths.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(data_split, context.config, "DATA_PATHS"), ": ", list, " lists no images"));
  }
  if (!found_prefix) {
    SSL_LOG(WARNING) << SplitKey(data_split, context.config, "REMOVE_IMG_PATH_PREFIX") << " is "
                     << split.remove_img_path_prefix << ", but no path of " << list << " begins so; the first is "
                     << paths[0];
  }
  paths.ShareFolder();
  SSL_ASSIGN_OR_RETURN(EncodedImageOptions options, ReadEncodedImageOptions(split, data_split, context));
  options.description = list;
  const bool are_absolute = absl::StartsWith(paths.prefix(), "/");
  return std::make_unique<DiskDataset>(
      std::move(paths), std::vector<int64_t>(), std::move(options),
      are_absolute ? ComparedPath::kLastFolderAndName : ComparedPath::kBelowSharedFolder);
}

}  // namespace ssl
