// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/label_source.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/datasets/labelled_dataset.h"

namespace ssl {
namespace {

constexpr char kFileList[] = "disk_filelist";

// The files of the one source; none: LABEL_PATHS is empty.
absl::StatusOr<std::vector<std::string>> GivenPaths(const DataSplitOptions& options, const std::string& place) {
  const std::vector<ConfigNode>& entries = options.label_paths.items();
  std::vector<std::string> paths;
  if (entries.empty()) return paths;
  if (entries.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(place, " has ", entries.size(), " entries, expected one, as ",
                                                   "DATA_SOURCES has one; [[a.npy, b.npy]] gives each sample a label ",
                                                   "of each file"));
  }
  if (entries.front().is_scalar()) return std::vector<std::string>{entries.front().text()};
  for (const ConfigNode& path : entries.front().items()) paths.push_back(path.text());
  return paths;
}

// The one of `paths`; of none, what the data set of DATASET_NAMES is known to have.
absl::StatusOr<std::string> KnownPath(const std::vector<std::string>& paths, const DataSplitOptions& options,
                                      const ConfigNode& data_split, const BuildContext& context) {
  const std::vector<std::string> below = options.split == "test"
                                             ? std::vector<std::string>{"val_labels.npy", "test_labels.npy"}
                                             : std::vector<std::string>{"train_labels.npy"};
  absl::StatusOr<std::string> path = FindDatasetPath("LABEL_PATHS", paths, below, options, data_split, context);
  const ConfigNode* given = data_split.Find("LABEL_PATHS");
  if (path.ok() || (given != nullptr && !given->location().file.empty())) return path;
  // Nobody wrote the key that lacks; who asks for it has a place.
  return Annotate(path.status(),
                  absl::StrCat(SplitKey(data_split, context.config, "LABEL_SOURCES"), " is [", kFileList, "]"));
}

absl::StatusOr<std::unique_ptr<Dataset>> AddFileLabels(std::unique_ptr<Dataset> dataset,
                                                       const DataSplitOptions& options, const ConfigNode& data_split,
                                                       const BuildContext& context) {
  const std::string place = SplitKey(data_split, context.config, "LABEL_PATHS");
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> paths, GivenPaths(options, place));
  if (paths.size() <= 1) {
    SSL_ASSIGN_OR_RETURN(std::string path, KnownPath(paths, options, data_split, context));
    paths = {std::move(path)};
  }
  absl::StatusOr<LabelTable> labels = ReadLabelFiles(context.file_system, paths);
  if (!labels.ok()) return Annotate(labels.status(), place);
  if (labels->size() != dataset->size()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", paths.front(), " holds ", labels->size(),
                                                   " labels, expected ", dataset->size(), ", the images of ",
                                                   dataset->description()));
  }
  if (labels->kind == LabelTable::Kind::kRow && labels->num_columns == 1) {
    SSL_LOG(INFO) << place << ": " << paths.front() << " has the shape [" << labels->size()
                  << ", 1]: 1 is read as an image of the one class, 0 as one that is not; class numbers are an array "
                     "of one axis: labels[:, 0]";
  }
  return std::make_unique<LabelledDataset>(std::move(dataset), *std::move(labels));
}

// Labels that are named and not read would be others than the data's, or none.
absl::Status CheckNoPaths(const DataSplitOptions& options, const ConfigNode& data_split, const BuildContext& context) {
  if (options.label_paths.items().empty()) return absl::OkStatus();
  const ConfigNode& first = options.label_paths.items().front();
  return absl::InvalidArgumentError(absl::StrCat(
      SplitKey(data_split, context.config, "LABEL_PATHS"), " is [", first.is_scalar() ? first.text() : "...",
      "], but LABEL_SOURCES is empty, so that nothing reads it; expected LABEL_SOURCES=[", kFileList, "]"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ApplyLabelSource(std::unique_ptr<Dataset> dataset,
                                                          const DataSplitOptions& options, const ConfigNode& data_split,
                                                          const BuildContext& context) {
  if (options.label_sources.empty()) {
    SSL_RETURN_IF_ERROR(CheckNoPaths(options, data_split, context));
    return dataset;
  }
  SSL_RETURN_IF_ERROR(CheckSingle("LABEL_SOURCES", options.label_sources, data_split, context));
  const std::string& source = options.label_sources.front();
  if (source == kFileList) return AddFileLabels(std::move(dataset), options, data_split, context);
  if (options.label_sources == options.data_sources) return dataset;
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "LABEL_SOURCES"), " is [", source,
                                                 "], expected nothing, [", kFileList, "] or [",
                                                 options.data_sources.front(), "] as DATA_SOURCES"));
}

}  // namespace ssl
