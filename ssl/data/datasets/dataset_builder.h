// SPDX-License-Identifier: Apache-2.0
//
// From a DATA.<SPLIT> node to a data set: sources, each with its labels, one after another (concat_dataset.h) ->
// HOLD_OUT_FRACTION -> DATA_LIMIT, so that a limit of SPLIT train takes none of SPLIT test. Errors name the key with
// file:line.
#ifndef SSL_DATA_DATASETS_DATASET_BUILDER_H_
#define SSL_DATA_DATASETS_DATASET_BUILDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"

namespace ssl {

// The result is not empty.
absl::StatusOr<std::unique_ptr<Dataset>> BuildDataset(const ConfigNode& data_split, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_DATASET_BUILDER_H_
