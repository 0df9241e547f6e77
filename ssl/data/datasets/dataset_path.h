// SPDX-License-Identifier: Apache-2.0
//
// Where a data set lies: DATA_PATHS or LABEL_PATHS when they are given, else what the file DATA.DATASET_CATALOG says of
// DATASET_NAMES, else the folder that Registries::dataset_folders holds for it.
//
// The catalog is VISSL's dataset_catalog.json: {"name": {"train": ["<images>", "<labels>"], "val": [...]}, ...}.
#ifndef SSL_DATA_DATASETS_DATASET_PATH_H_
#define SSL_DATA_DATASETS_DATASET_PATH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/data_options.h"

namespace ssl {

// The first of `paths`, which is the value of `key`. When it is empty: what the catalog says of the data set's name
// (its labels for LABEL_PATHS); else the folder of that name, and in it the first of `below` that exists ("" is the
// folder itself). InvalidArgument when neither is set, or the path is none; NotFound names what was looked for.
absl::StatusOr<std::string> FindDatasetPath(absl::string_view key, const std::vector<std::string>& paths,
                                            const std::vector<std::string>& below, const DataSplitOptions& options,
                                            const ConfigNode& data_split, const BuildContext& context);

// "; config.DATA.TRAIN.DATA_SOURCES=[tar_shards] reads tar files": what reads a path of such a kind and name, for a
// message of a source that does not.
std::string AdviseSource(const std::string& path, const ConfigNode& data_split, const BuildContext& context);

// InvalidArgument, naming `key`, when a list that VISSL allows to be longer has several entries.
absl::Status CheckSingle(absl::string_view key, const std::vector<std::string>& values, const ConfigNode& data_split,
                         const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_DATASET_PATH_H_
