// SPDX-License-Identifier: Apache-2.0
//
// Images in one .npy array, each read from the file when it is asked for: an array larger than the memory costs nothing
// to open, and one that another process cuts off meanwhile is an error (a mapped one would end the process).
#ifndef SSL_DATA_DATASETS_NPY_DATASET_H_
#define SSL_DATA_DATASETS_NPY_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"

namespace ssl {

class NpyDataset : public Dataset {
 public:
  // The file holds an 8-bit (|u1) array [N, H, W] or [N, H, W, channels], 1 or 3 channels, N, H and W at least 1.
  // [N, H, 3] and [N, H, 4] that are not of squares are one colour image each, and refused.
  // InvalidArgument names its path, what was found, and what numpy makes of it what is expected; errors of ReadNpy.
  // DataLoss, too, where the file is replaced by another one meanwhile.
  static absl::StatusOr<std::unique_ptr<NpyDataset>> Open(FileSystem& file_system, const std::string& path);

  int64_t size() const override { return count_; }
  bool has_labels() const override { return false; }
  std::string description() const override { return path_; }
  // "images.npy: image 3 of 40, 32 x 32 x 3, pixels 1a2b3c4d": the checksum is that of pieces of the whole file, so
  // that another file of the same name and shape is told, but not each change of one.
  std::string SampleIdentity(int64_t index) const override;
  // DataLoss: the file is shorter than it was.
  absl::Status Get(int64_t index, Sample* sample) const override;

 private:
  NpyDataset(const NpyArray& array, std::unique_ptr<ReadableFile> file, int64_t begin, uint32_t checksum);

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const int64_t begin_;      // of the pixels in the file
  const uint32_t checksum_;  // of pieces of them
  const int64_t count_;
  const int height_;
  const int width_;
  const int channels_;
};

// DATA_SOURCES: [npy_images]: the array of DATA_PATHS, without labels: LABEL_SOURCES [disk_filelist] adds those of a
// .npy file of integers. Without DATA_PATHS: "train_images.npy" ("val_images.npy", "test_images.npy") of the folder
// that DATASET_NAMES is known to have.
absl::StatusOr<std::unique_ptr<Dataset>> MakeNpyImages(const ConfigNode& data_split, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_NPY_DATASET_H_
