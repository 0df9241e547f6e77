// SPDX-License-Identifier: Apache-2.0
//
// Images in one .npy array, mapped and not read: an array larger than the memory costs nothing to open.
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
#include "ssl/io/npy.h"

namespace ssl {

class NpyDataset : public Dataset {
 public:
  // array: 8-bit (|u1) [N, H, W] or [N, H, W, channels], 1 or 3 channels, N, H and W at least 1. InvalidArgument names
  // its path, what was found, and what numpy makes of it what is expected.
  static absl::StatusOr<std::unique_ptr<NpyDataset>> Create(NpyArray array);

  int64_t size() const override { return array_.shape[0]; }
  bool has_labels() const override { return false; }
  std::string description() const override { return array_.path; }
  // The shape of an image: its pixels lie in the file.
  std::string SampleIdentity(int64_t index) const override;
  // Lends the pixels.
  absl::Status Get(int64_t index, Sample* sample) const override;

 private:
  explicit NpyDataset(NpyArray array);

  const NpyArray array_;
  int height_ = 0;
  int width_ = 0;
  int channels_ = 1;
};

// DATA_SOURCES: [npy_images]: the array of DATA_PATHS, without labels: LABEL_SOURCES [disk_filelist] adds those of a
// .npy file of integers. Without DATA_PATHS: "train_images.npy" ("val_images.npy", "test_images.npy") of the folder
// that DATASET_NAMES is known to have.
absl::StatusOr<std::unique_ptr<Dataset>> MakeNpyImages(const ConfigNode& data_split, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_NPY_DATASET_H_
