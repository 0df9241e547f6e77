// SPDX-License-Identifier: Apache-2.0
//
// Images that are computed from their index: for tests and for trying things out without data. A class is a
// direction and frequency of stripes; phase, contrast and noise differ from image to image.
#ifndef SSL_DATA_DATASETS_SYNTHETIC_DATASET_H_
#define SSL_DATA_DATASETS_SYNTHETIC_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"

namespace ssl {

struct SyntheticDatasetOptions {
  int64_t size = 50000;
  int side = 224;           // pixels
  int channels = 3;         // 1 or 3
  int64_t num_classes = 0;  // label = index modulo num_classes; 0: no labels
  uint64_t seed = 0;
};

class SyntheticDataset : public Dataset {
 public:
  explicit SyntheticDataset(const SyntheticDatasetOptions& options) : options_(options) {}

  int64_t size() const override { return options_.size; }
  bool has_labels() const override { return options_.num_classes > 0; }
  std::string description() const override { return "synthetic data set"; }
  absl::Status Get(int64_t index, Sample* sample) const override;
  int64_t Label(int64_t index) const override { return has_labels() ? index % options_.num_classes : -1; }

 private:
  SyntheticDatasetOptions options_;
};

// DATA_SOURCES: [synthetic]. Size: DATA_LIMIT, or 50,000; side: DEFAULT_GRAY_IMG_SIZE; channels: IMAGE_CHANNELS;
// classes: RANDOM_SYNTHETIC_LABELS. The two splits hold different images.
absl::StatusOr<std::unique_ptr<Dataset>> MakeSyntheticDataset(const ConfigNode& data_split,
                                                              const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_SYNTHETIC_DATASET_H_
