// SPDX-License-Identifier: Apache-2.0
//
// CIFAR-10, CIFAR-100 and STL-10 in the binary versions of their publishers: images as three planes of bytes, one
// after the other, with labels between them (CIFAR) or in a file of their own (STL-10). Read into memory.
//
//   CIFAR-10:  data_batch_1.bin ... data_batch_5.bin, test_batch.bin: records of label, 3 x 32 x 32 bytes
//   CIFAR-100: train.bin, test.bin: records of coarse label, fine label, 3 x 32 x 32 bytes; the fine label is used
//   STL-10:    train_X.bin, train_y.bin, test_X.bin, test_y.bin: 3 x 96 x 96 bytes each, columns before rows; labels
//              from 1 on, which become classes from 0 on
#ifndef SSL_DATA_DATASETS_BINARY_DATASET_H_
#define SSL_DATA_DATASETS_BINARY_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"
#include "ssl/io/file_system.h"

namespace ssl {

// folder: with the files themselves, or with the folder that the publisher's archive unpacks to.
// NotFound names the missing file; DataLoss a file whose size is no whole number of records, or a label out of range.
absl::StatusOr<std::unique_ptr<Dataset>> ReadCifar10(FileSystem& file_system, const std::string& folder, bool test);
absl::StatusOr<std::unique_ptr<Dataset>> ReadCifar100(FileSystem& file_system, const std::string& folder, bool test);
absl::StatusOr<std::unique_ptr<Dataset>> ReadStl10(FileSystem& file_system, const std::string& folder, bool test);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_BINARY_DATASET_H_
