// SPDX-License-Identifier: Apache-2.0
//
// The data source torchvision_dataset: small data sets under the names that torchvision gives them, from the files of
// their publishers (idx_dataset.h, binary_dataset.h).
#ifndef SSL_DATA_DATASETS_TORCHVISION_DATASET_H_
#define SSL_DATA_DATASETS_TORCHVISION_DATASET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"

namespace ssl {

// DATA_SOURCES: [torchvision_dataset], DATASET_NAMES: [CIFAR10], [CIFAR100], [fashion_mnist], [MNIST] or [STL10], in
// any case; DATA_PATHS: [folder]. Without DATA_PATHS the folder is that of Registries::dataset_folders. SPLIT says
// which part.
absl::StatusOr<std::unique_ptr<Dataset>> MakeTorchvisionDataset(const ConfigNode& data_split,
                                                                const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TORCHVISION_DATASET_H_
