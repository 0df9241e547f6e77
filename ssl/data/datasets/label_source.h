// SPDX-License-Identifier: Apache-2.0
//
// Where labels come from: LABEL_SOURCES, LABEL_PATHS and LABEL_TYPE.
//
// VISSL gives a data set only those labels that LABEL_SOURCES asks for. Sources here bring their labels along
// (disk_folder, torchvision_dataset, synthetic with RANDOM_SYNTHETIC_LABELS), so that empty LABEL_SOURCES mean these. A
// data set that has none stays without: VISSL then labels every sample by its index, which a classifier trains on
// without a word. Who wants that sets LABEL_TYPE sample_index.
#ifndef SSL_DATA_DATASETS_LABEL_SOURCE_H_
#define SSL_DATA_DATASETS_LABEL_SOURCE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"

namespace ssl {

// The images of `dataset`, the whole data set, with the labels that `options` names: LABEL_SOURCES empty or equal to
// DATA_SOURCES: its own; disk_filelist: those of the file LABEL_PATHS, or one from each of the files that are listed
// there (label_table.h), or, when that is empty, "train_labels.npy" ("val_labels.npy", "test_labels.npy") in the folder
// that DATASET_NAMES is known to have.
// InvalidArgument names the key, the file and both counts when they differ, and LABEL_PATHS that empty LABEL_SOURCES
// leave unread.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyLabelSource(std::unique_ptr<Dataset> dataset,
                                                          const DataSplitOptions& options, const ConfigNode& data_split,
                                                          const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_LABEL_SOURCE_H_
