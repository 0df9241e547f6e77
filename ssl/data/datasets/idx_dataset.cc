// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_dataset.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ReadIdxDataset(FileSystem& file_system, const std::string& folder,
                                                        IdxSplit split) {
  const std::string prefix = split == IdxSplit::kTrain ? "train" : "t10k";
  SSL_ASSIGN_OR_RETURN(const std::string image_path, FindFile(file_system, folder, prefix + "-images-idx3-ubyte"));
  SSL_ASSIGN_OR_RETURN(const std::string label_path, FindFile(file_system, folder, prefix + "-labels-idx1-ubyte"));
  SSL_ASSIGN_OR_RETURN(IdxArray images, ReadIdx(file_system, image_path, 3));
  SSL_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(file_system, label_path, 1));
  if (images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(image_path, " holds ", images.shape[0], " images, but ", label_path,
                                                   " holds ", labels.shape[0], " labels"));
  }
  if (images.shape[1] > std::numeric_limits<int>::max() || images.shape[2] > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(image_path, ": images have ", images.shape[2], " x ", images.shape[1], " pixels, too many"));
  }
  ImageArray array;
  array.count = images.shape[0];
  array.height = static_cast<int>(images.shape[1]);
  array.width = static_cast<int>(images.shape[2]);
  array.pixels = std::move(images.values);
  array.labels.assign(labels.values.begin(), labels.values.end());
  return ArrayDataset::Create(std::move(array), image_path);
}

}  // namespace ssl
