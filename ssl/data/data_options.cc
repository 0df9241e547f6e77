// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/data_options.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

// "config.DATA.TRAIN" or "config.DATA.TEST" for the nodes of the tree; a copy of a node is told by its own words only.
std::string SplitPath(const ConfigNode& data_split, const ConfigNode& config) {
  for (const char* path : {"DATA.TRAIN", "DATA.TEST"}) {
    if (config.FindPath(path) == &data_split) return absl::StrCat("config.", path);
  }
  return "config.DATA.<split>";
}

}  // namespace

void DataOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NUM_DATALOADER_WORKERS", &num_dataloader_workers,
                Doc("Threads that prepare batches; 0: the training thread does it.").Between(0, 256));
}

void DataLimitSamplingOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SEED", &seed, Doc("Seed of the drawn subset.").Between(0, 4294967295.0));
  visitor.Field("IS_BALANCED", &is_balanced, Doc("Draw equally many samples of each class; not supported yet."));
  visitor.Field("SKIP_NUM_SAMPLES", &skip_num_samples, Doc("Leave out the first samples of the draw.").AtLeast(0));
}

void DataSplitOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SPLIT", &split, Doc("Which part of a data set that has parts.").OneOf({"train", "test"}));
  visitor.Field("BASE_DATASET", &base_dataset, Doc("Data set type."));
  visitor.Field("DATA_SOURCES", &data_sources, Doc("Kind of storage, one name: torchvision_dataset, synthetic."));
  visitor.Field("DATASET_NAMES", &dataset_names, Doc("Name of the data set, one: fashion_mnist, mnist."));
  visitor.Field("DATA_PATHS", &data_paths, Doc("Folder of the data set, one; empty: where the name is known to lie."));
  visitor.Field("LABEL_SOURCES", &label_sources, Doc("Empty or as DATA_SOURCES: labels come with the pictures."));
  visitor.Field("LABEL_PATHS", &label_paths, Doc("Empty or as DATA_PATHS."));
  visitor.Field("LABEL_TYPE", &label_type,
                Doc("Labels of the data set, the sample's index, or 0.").OneOf({"standard", "sample_index", "zero"}));
  visitor.Field("BATCHSIZE_PER_REPLICA", &batch_size_per_replica, Doc("Batch size of one rank.").Between(1, 1 << 20));
  visitor.Field("TRANSFORMS", &transforms, Doc("List of transforms, each with its name and parameters."));
  visitor.Field("COLLATE_FUNCTION", &collate_function,
                Doc("multicrop_collator for several views of a picture, default_collate for one.")
                    .OneOf({"default_collate", "multicrop_collator"}));
  visitor.Field("DROP_LAST", &drop_last, Doc("Leave out a last batch that is not full."));
  visitor.Field("DATA_LIMIT", &data_limit, Doc("Use this many samples, drawn once by seed; -1: all.").AtLeast(-1));
  visitor.Section("DATA_LIMIT_SAMPLING", &data_limit_sampling, Doc("How DATA_LIMIT draws."));
  visitor.Field("IMAGE_CHANNELS", &image_channels,
                Doc("Channels of the network's input, 1 or 3; grey pictures are replicated into 3.").Between(1, 3));
  visitor.Field("DEFAULT_GRAY_IMG_SIZE", &default_gray_img_size,
                Doc("Side of synthetic pictures.").Between(1, 4096).Unit("pixels"));
  visitor.Field("RANDOM_SYNTHETIC_LABELS", &random_synthetic_labels,
                Doc("Classes of synthetic pictures; 0: no labels.").Between(0, 1 << 20));
  visitor.Field("MMAP_MODE", &mmap_mode, Doc("Accepted as in VISSL; the sources here hold their data in memory."));
  visitor.Field("COPY_TO_LOCAL_DISK", &copy_to_local_disk, Doc("Not supported: must be False."));
}

absl::StatusOr<DataSplitOptions> ReadDataSplit(const ConfigNode& data_split, const ConfigNode& config) {
  DataSplitOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(data_split, SplitPath(data_split, config), UnknownKeys::kIgnore, &options));
  if (options.copy_to_local_disk) {
    return absl::UnimplementedError(
        absl::StrCat(SplitKey(data_split, config, "COPY_TO_LOCAL_DISK"), " is True, expected False: not supported"));
  }
  if (options.data_limit_sampling.is_balanced) {
    return absl::UnimplementedError(absl::StrCat(SplitKey(data_split, config, "DATA_LIMIT_SAMPLING"),
                                                 ".IS_BALANCED is True, expected False: not supported yet"));
  }
  if (options.image_channels == 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(data_split, config, "IMAGE_CHANNELS"), " is 2, expected 1 or 3"));
  }
  return options;
}

std::string SplitKey(const ConfigNode& data_split, const ConfigNode& config, absl::string_view key) {
  const std::string path = absl::StrCat(SplitPath(data_split, config), ".", key);
  const ConfigNode* value = data_split.Find(key);
  if (value == nullptr || value->location().file.empty()) return path;
  return absl::StrCat(value->location().ToString(), ": ", path);
}

}  // namespace ssl
