// SPDX-License-Identifier: Apache-2.0
//
// Images in files, read and decoded when they are asked for.
//
// An image that cannot be read does not end a run, unless it is asked to: as in VISSL, a grey one (128 everywhere)
// takes its place under the same label, or with use_neighbour the next image of the data set that can be read. (VISSL
// takes one that happened to be decoded before, which depends on the timing of its workers.) Sample::fault says so. Too
// many broken images are an error: broken_images.h.
#ifndef SSL_DATA_DATASETS_DISK_DATASET_H_
#define SSL_DATA_DATASETS_DISK_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/path_list.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/image.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct DiskDatasetOptions {
  std::string description;               // for messages: the folder or the list
  std::vector<std::string> class_names;  // by label; empty: labels are numbers only
  int grey_side = 224;                   // pixels, of the image that replaces a broken one
  bool use_neighbour = false;
  std::string refuses_broken;  // the key that makes a broken image an error; empty: it is replaced
  double max_broken_fraction = 0.1;
  std::string max_broken_place;  // the key that says so
  DecodeLimits limits;
  FileSystem* file_system = &PosixFileSystem();  // images are read through it; outlives the data set
};

class DiskDataset : public Dataset {
 public:
  // paths: not empty. labels: one for each path, or none.
  DiskDataset(PathList paths, std::vector<int64_t> labels, DiskDatasetOptions options);

  int64_t size() const override { return paths_.size(); }
  bool has_labels() const override { return !labels_.empty(); }
  std::string description() const override { return options_.description; }
  // The image is 8-bit RGB.
  absl::Status Get(int64_t index, Sample* sample) const override;
  std::string ImagePath(int64_t index) const override { return paths_[index]; }
  int64_t Label(int64_t index) const override { return labels_.empty() ? -1 : labels_[index]; }
  absl::Span<const std::string> ClassNames() const override { return options_.class_names; }
  std::string SampleName(int64_t index) const override { return paths_[index]; }

  // What was replaced so far.
  const BrokenImages& broken() const { return broken_; }

 private:
  // An error names the path.
  absl::Status Decode(int64_t index, Sample* sample) const;
  void Replace(int64_t index, Sample* sample) const;

  PathList paths_;
  std::vector<int64_t> labels_;
  DiskDatasetOptions options_;
  mutable BrokenImages broken_;
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
