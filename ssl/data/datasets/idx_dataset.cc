// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_dataset.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/idx_file.h"

namespace ssl {
namespace {

// The compressed or the plain file, whichever is there.
absl::StatusOr<std::string> FindFile(FileSystem& file_system, const std::string& folder, const std::string& name) {
  const std::string plain = absl::StrCat(folder, "/", name);
  const std::string compressed = absl::StrCat(plain, ".gz");
  if (file_system.Exists(compressed)) return compressed;
  if (file_system.Exists(plain)) return plain;
  return absl::NotFoundError(absl::StrCat("data set file is missing: neither ", compressed, " nor ", plain,
                                          " exists; set DATA_PATHS to the folder that holds it"));
}

// The folder that DATA_PATHS or the registries name.
absl::StatusOr<std::string> FolderOf(const std::string& name, const DataSplitOptions& options,
                                     const ConfigNode& data_split, const BuildContext& context) {
  if (!options.data_paths.empty()) return options.data_paths.front();
  const auto known = context.registries.dataset_folders.find(name);
  if (known != context.registries.dataset_folders.end()) return known->second;
  return absl::InvalidArgumentError(absl::StrCat(
      SplitKey(data_split, context.config, "DATA_PATHS"), " is empty and no folder is known for data set '", name,
      "'; set it to the folder with ", options.split == "test" ? "t10k" : "train", "-images-idx3-ubyte.gz"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ReadIdxDataset(FileSystem& file_system, const std::string& folder,
                                                        IdxSplit split) {
  const std::string prefix = split == IdxSplit::kTrain ? "train" : "t10k";
  SSL_ASSIGN_OR_RETURN(const std::string image_path, FindFile(file_system, folder, prefix + "-images-idx3-ubyte"));
  SSL_ASSIGN_OR_RETURN(const std::string label_path, FindFile(file_system, folder, prefix + "-labels-idx1-ubyte"));
  SSL_ASSIGN_OR_RETURN(IdxArray images, ReadIdx(file_system, image_path, 3));
  SSL_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(file_system, label_path, 1));
  if (images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(image_path, " holds ", images.shape[0], " pictures, but ",
                                                   label_path, " holds ", labels.shape[0], " labels"));
  }
  if (images.shape[1] > std::numeric_limits<int>::max() || images.shape[2] > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(image_path, ": pictures have ", images.shape[1], " x ", images.shape[2], " pixels, too many"));
  }
  ImageArray array;
  array.count = images.shape[0];
  array.height = static_cast<int>(images.shape[1]);
  array.width = static_cast<int>(images.shape[2]);
  array.pixels = std::move(images.values);
  array.labels.assign(labels.values.begin(), labels.values.end());
  return ArrayDataset::Create(std::move(array), image_path);
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeTorchvisionDataset(const ConfigNode& data_split,
                                                                const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> known = {"fashion_mnist", "mnist"};
  const std::string name = options.dataset_names.empty() ? "" : absl::AsciiStrToLower(options.dataset_names.front());
  if (name != known[0] && name != known[1]) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "DATASET_NAMES"), " is [",
                                                   absl::StrJoin(options.dataset_names, ", "), "], expected one of ",
                                                   absl::StrJoin(known, ", "), DidYouMean(name, known)));
  }
  SSL_ASSIGN_OR_RETURN(const std::string folder, FolderOf(name, options, data_split, context));
  return ReadIdxDataset(PosixFileSystem(), folder, options.split == "test" ? IdxSplit::kTest : IdxSplit::kTrain);
}

}  // namespace ssl
