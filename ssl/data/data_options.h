// SPDX-License-Identifier: Apache-2.0
//
// The configuration sections DATA, DATA.TRAIN and DATA.TEST. Keys and defaults are VISSL's; AUGMENT_ON, BROKEN_IMAGES,
// CACHE, CACHE_BYTES, DATASET_CATALOG, DECODE, EXIF_ORIENTATION, GRAY_16_BIT, HOLD_OUT_FRACTION, IMAGE_CHANNELS,
// MAX_BROKEN_FRACTION, MINI_EPOCHS, MINI_EPOCH_GROUPS and SPLIT are ours.
#ifndef SSL_DATA_DATA_OPTIONS_H_
#define SSL_DATA_DATA_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/shared_options.h"
#include "ssl/data/image/decode_mode.h"

namespace ssl {

// DATA, without the splits.
struct DataOptions : public Options {
  int64_t num_dataloader_workers = 4;
  std::string dataset_catalog;

  void VisitFields(FieldVisitor& visitor) override;
};

// DATA.<SPLIT>.DATA_LIMIT_SAMPLING.
struct DataLimitSamplingOptions : public Options {
  int64_t seed = 0;
  bool is_balanced = false;
  int64_t skip_num_samples = 0;

  void VisitFields(FieldVisitor& visitor) override;
};

// DATA.<SPLIT>.STRATIFIED_SAMPLER.
struct StratifiedSamplerSettings : public Options {
  bool enabled = false;
  int64_t classes_per_batch = 2;
  int64_t step_per_epoch = 1250;
  bool unique_classes = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// DATA.<SPLIT>.POWER_LAW_SAMPLER.
struct PowerLawSamplerSettings : public Options {
  bool enabled = false;
  double power = 1.0;

  void VisitFields(FieldVisitor& visitor) override;
};

// DATA.TRAIN and DATA.TEST.
struct DataSplitOptions : public BatchSizeOptions {
  std::string split = "train";  // which part of a data set that has parts: train | test
  std::string base_dataset = "generic_ssl";
  std::vector<std::string> data_sources;
  std::vector<std::string> dataset_names = {"imagenet1k_folder"};
  std::vector<std::string> data_paths;
  std::vector<std::string> label_sources;
  ConfigNode label_paths = ConfigNode::List();  // entries are paths, or lists of paths
  std::string label_type = "standard";
  std::string remove_img_path_prefix;
  std::string new_img_path_prefix;
  std::string broken_images = "gray";
  bool enable_queue_dataset = false;
  double max_broken_fraction = 0.1;
  bool exif_orientation = false;
  std::string decode = "exact";
  std::string gray_16_bit = "scale";
  std::string cache = "none";
  int64_t cache_bytes = int64_t{1} << 30;
  std::string paths_below;
  ConfigNode transforms = ConfigNode::List();
  std::string augment_on = "host";
  std::string collate_function = "default_collate";
  ConfigNode collate_function_params = ConfigNode::Map();
  std::vector<std::string> input_key_names = {"data"};
  std::vector<std::string> target_key_names = {"label"};
  bool use_stateful_distributed_sampler = false;
  bool use_debugging_sampler = false;
  StratifiedSamplerSettings stratified_sampler;
  PowerLawSamplerSettings power_law_sampler;
  int64_t mini_epochs = 1;
  int64_t mini_epoch_groups = 1;
  bool drop_last = false;
  int64_t data_limit = -1;
  DataLimitSamplingOptions data_limit_sampling;
  double hold_out_fraction = 0.0;
  int64_t image_channels = 3;
  int64_t default_gray_img_size = 224;
  int64_t random_synthetic_labels = 0;

  void VisitFields(FieldVisitor& visitor) override;
};

// Reads a DATA.<SPLIT> node of the tree `config`; keys that are not ours are left to the check of the whole tree.
// InvalidArgument for settings that contradict each other.
absl::StatusOr<DataSplitOptions> ReadDataSplit(const ConfigNode& data_split, const ConfigNode& config);

// InvalidArgument where AUGMENT_ON asks a device to make the views, and the training has none or its images are grey.
absl::Status CheckAugmentOn(const DataSplitOptions& options, const ConfigNode& data_split, const ConfigNode& config);

// What GRAY_16_BIT says.
Grey16 Grey16Of(const DataSplitOptions& options);

// "config.DATA.TRAIN" or "config.DATA.TEST" for the nodes of the tree `config`; "config.DATA.<split>" for a copy of
// one.
std::string SplitPath(const ConfigNode& data_split, const ConfigNode& config);

// "file:line: config.DATA.TRAIN.KEY": how messages name a key, or a path of keys, of a split. `config` is the tree that
// holds the split; a key that no file sets is named without a place.
std::string SplitKey(const ConfigNode& data_split, const ConfigNode& config, absl::string_view key);

}  // namespace ssl

#endif  // SSL_DATA_DATA_OPTIONS_H_
