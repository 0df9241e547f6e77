// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/label_source.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/datasets/labelled_dataset.h"

namespace ssl {
namespace {

constexpr char kFileList[] = "disk_filelist";

absl::StatusOr<std::unique_ptr<Dataset>> AddFileLabels(std::unique_ptr<Dataset> dataset,
                                                       const DataSplitOptions& options, const ConfigNode& data_split,
                                                       const BuildContext& context) {
  const std::vector<std::string> below = options.split == "test"
                                             ? std::vector<std::string>{"val_labels.npy", "test_labels.npy"}
                                             : std::vector<std::string>{"train_labels.npy"};
  SSL_ASSIGN_OR_RETURN(const std::string path,
                       FindDatasetPath("LABEL_PATHS", options.label_paths, below, options, data_split, context));
  const std::string place = SplitKey(data_split, context.config, "LABEL_PATHS");
  absl::StatusOr<LabelTable> labels = ReadLabelFile(context.file_system, path);
  if (!labels.ok()) return Annotate(labels.status(), place);
  if (labels->size() != dataset->size()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", path, " holds ", labels->size(), " labels, expected ",
                                                   dataset->size(), ", the images of ", dataset->description()));
  }
  return std::make_unique<LabelledDataset>(std::move(dataset), *std::move(labels));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ApplyLabelSource(std::unique_ptr<Dataset> dataset,
                                                          const DataSplitOptions& options, const ConfigNode& data_split,
                                                          const BuildContext& context) {
  if (options.label_sources.empty()) return dataset;
  SSL_RETURN_IF_ERROR(CheckSingle("LABEL_SOURCES", options.label_sources, data_split, context));
  const std::string& source = options.label_sources.front();
  if (source == kFileList) return AddFileLabels(std::move(dataset), options, data_split, context);
  if (options.label_sources == options.data_sources) return dataset;
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "LABEL_SOURCES"), " is [", source,
                                                 "], expected nothing, [", kFileList, "] or [",
                                                 options.data_sources.front(), "] as DATA_SOURCES"));
}

}  // namespace ssl
