// SPDX-License-Identifier: Apache-2.0
//
// Images of one size, held in memory: what IDX files become, and the way in for a host's own arrays.
// Get lends the pixels without a copy.
#ifndef SSL_DATA_DATASETS_ARRAY_DATASET_H_
#define SSL_DATA_DATASETS_ARRAY_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"

namespace ssl {

struct ImageArray {
  int64_t count = 0;
  int height = 0;
  int width = 0;
  int channels = 1;
  std::vector<uint8_t> pixels;  // [count, height, width, channels]
  std::vector<int64_t> labels;  // [count], or empty
};

class ArrayDataset : public Dataset {
 public:
  // description: for messages. InvalidArgument when sizes contradict each other or nothing is there.
  static absl::StatusOr<std::unique_ptr<ArrayDataset>> Create(ImageArray array, std::string description);

  int64_t size() const override { return array_.count; }
  bool has_labels() const override { return !array_.labels.empty(); }
  std::string description() const override { return description_; }
  absl::Status Get(int64_t index, Sample* sample) const override;
  // The checksum of its pixels.
  std::string SampleIdentity(int64_t index) const override;
  int64_t Label(int64_t index) const override { return has_labels() ? array_.labels[index] : -1; }

 private:
  int64_t image_bytes() const { return static_cast<int64_t>(array_.height) * array_.width * array_.channels; }

  ArrayDataset(ImageArray array, std::string description);

  ImageArray array_;
  std::string description_;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_ARRAY_DATASET_H_
