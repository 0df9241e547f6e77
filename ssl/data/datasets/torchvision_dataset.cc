// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/torchvision_dataset.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/binary_dataset.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/idx_dataset.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

using Reader =
    std::function<absl::StatusOr<std::unique_ptr<Dataset>>(FileSystem& files, const std::string& folder, bool test)>;

absl::StatusOr<std::unique_ptr<Dataset>> ReadMnist(FileSystem& files, const std::string& folder, bool test) {
  return ReadIdxDataset(files, folder, test ? IdxSplit::kTest : IdxSplit::kTrain);
}

std::map<std::string, Reader> Readers() {
  return {
      {"cifar10", ReadCifar10}, {"cifar100", ReadCifar100}, {"fashion_mnist", ReadMnist},
      {"mnist", ReadMnist},     {"stl10", ReadStl10},
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> MakeTorchvisionDataset(const ConfigNode& data_split,
                                                                const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(data_split, context.config));
  const std::map<std::string, Reader> readers = Readers();
  const std::string name = options.dataset_names.empty() ? "" : absl::AsciiStrToLower(options.dataset_names.front());
  const auto reader = readers.find(name);
  if (reader == readers.end()) {
    std::vector<std::string> known;
    for (const auto& entry : readers) known.push_back(entry.first);
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "DATASET_NAMES"), " is [",
                                                   absl::StrJoin(options.dataset_names, ", "), "], expected one of ",
                                                   absl::StrJoin(known, ", "), DidYouMean(name, known)));
  }
  SSL_ASSIGN_OR_RETURN(const std::string folder,
                       FindDatasetPath("DATA_PATHS", options.data_paths, {""}, options, data_split, context));
  return reader->second(context.file_system, folder, options.split == "test");
}

}  // namespace ssl
