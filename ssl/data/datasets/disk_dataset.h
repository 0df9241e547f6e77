// SPDX-License-Identifier: Apache-2.0
//
// Images in files, read and decoded when they are asked for.
#ifndef SSL_DATA_DATASETS_DISK_DATASET_H_
#define SSL_DATA_DATASETS_DISK_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/encoded_image_dataset.h"
#include "ssl/data/datasets/path_list.h"

namespace ssl {

// What of a path tells a sample from others on every host: all below the folder that all paths share, or, of absolute
// paths, the last folder and the name, because each host may mount its disks elsewhere and share another folder.
enum class ComparedPath { kBelowSharedFolder, kLastFolderAndName };

class DiskDataset : public EncodedImageDataset {
 public:
  // paths: not empty. labels: one for each path, or none.
  DiskDataset(PathList paths, std::vector<int64_t> labels, EncodedImageOptions options,
              ComparedPath compared = ComparedPath::kBelowSharedFolder);

  std::string ImagePath(int64_t index) const override { return paths_[index]; }
  std::string SampleIdentity(int64_t index) const override;

 private:
  FilePart Locate(int64_t index, std::string* path) const override {
    paths_.Get(index, path);
    return {};
  }

  const PathList paths_;
  const ComparedPath compared_;
};

// DATA_SOURCES: [disk_folder]: the images of DATA_PATHS in the order and with the labels of image_folder.h, or without
// labels where it has no folders. Without
// DATA_PATHS the folder "train" (for SPLIT test: "val" or "test") of the folder that DATASET_NAMES is known to have.
absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFolder(const ConfigNode& data_split, const BuildContext& context);

// DATA_SOURCES: [disk_filelist]: the images that the file DATA_PATHS lists (string_list.h), without labels. A path
// that begins with REMOVE_IMG_PATH_PREFIX begins with NEW_IMG_PATH_PREFIX instead; others stay. Relative paths start
// at the working directory. Without DATA_PATHS: "train_images.npy" ("val_images.npy", "test_images.npy") of the folder
// that DATASET_NAMES is known to have, the names that VISSL's scripts give.
absl::StatusOr<std::unique_ptr<Dataset>> MakeDiskFilelist(const ConfigNode& data_split, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_DISK_DATASET_H_
