// SPDX-License-Identifier: Apache-2.0
//
// MNIST and Fashion-MNIST from a folder with their four files, under the names of their publishers:
// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each with or
// without ".gz".
#ifndef SSL_DATA_DATASETS_IDX_DATASET_H_
#define SSL_DATA_DATASETS_IDX_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"
#include "ssl/io/file_system.h"

namespace ssl {

enum class IdxSplit { kTrain, kTest };

// Reads a split of the data set in `folder` into memory.
// NotFound names both spellings of a missing file; DataLoss and InvalidArgument as in idx_file.h; InvalidArgument when
// images and labels are not equally many.
absl::StatusOr<std::unique_ptr<Dataset>> ReadIdxDataset(FileSystem& file_system, const std::string& folder,
                                                        IdxSplit split);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_IDX_DATASET_H_
