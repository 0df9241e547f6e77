// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/data_options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/data/collators/collators.h"

namespace ssl {
void DataOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NUM_DATALOADER_WORKERS", &num_dataloader_workers,
                Doc("Threads that prepare batches; 0: the training thread does it.").Between(0, 256).MayChange());
  visitor.Field("DATASET_CATALOG", &dataset_catalog,
                Doc("File as VISSL's dataset_catalog.json: where the data sets of DATASET_NAMES lie. (ours)"));
}

void DataLimitSamplingOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SEED", &seed, Doc("Seed of the drawn subset.").Between(0, 4294967295.0));
  visitor.Field("IS_BALANCED", &is_balanced, Doc("Draw equally many samples of each class."));
  visitor.Field("SKIP_NUM_SAMPLES", &skip_num_samples, Doc("Leave out the first samples of the draw.").AtLeast(0));
}

void StratifiedSamplerSettings::VisitFields(FieldVisitor& visitor) {
  visitor.Field("ENABLED", &enabled, Doc("Of TRAIN: batches have equally many samples of a few classes each."));
  visitor.Field("CLASSES_PER_BATCH", &classes_per_batch, Doc("How many classes.").AtLeast(1));
  visitor.Field("STEP_PER_EPOCH", &step_per_epoch,
                Doc("Batches of an epoch, rounded down to whole passes over the classes.").AtLeast(1));
  visitor.Field("UNIQUE_CLASSES", &unique_classes,
                Doc("CLASSES_PER_BATCH are divided among the ranks, instead of being the same on all."));
}

void PowerLawSamplerSettings::VisitFields(FieldVisitor& visitor) {
  visitor.Field("ENABLED", &enabled, Doc("Of TRAIN: classes are drawn with unequal probabilities."));
  visitor.Field("POWER", &power,
                Doc("The i-th of the shuffled classes has 1 / i to this power; below 0: the root of its size."));
}

void DataSplitOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SPLIT", &split, Doc("Which part of a data set that has parts.").OneOf({"train", "test"}));
  visitor.Field("BASE_DATASET", &base_dataset, Doc("Data set type."));
  visitor.Field("DATA_SOURCES", &data_sources,
                Doc("Kinds of storage: disk_filelist, disk_folder, npy_images, synthetic, tar_shards, "
                    "torchvision_dataset; of several the samples follow one another."));
  visitor.Field("DATASET_NAMES", &dataset_names,
                Doc("Name of each data set; with empty DATA_PATHS it says where the data lies."));
  visitor.Field("DATA_PATHS", &data_paths,
                Doc("Folder, file list, array or shards, one for each of DATA_SOURCES; empty: where DATASET_NAMES is "
                    "known to lie."));
  visitor.Field(
      "LABEL_SOURCES", &label_sources,
      Doc("Kind of storage of the labels, one for each of DATA_SOURCES: disk_filelist or the data source; empty: what "
          "comes with the images."));
  visitor.Field("LABEL_PATHS", &label_paths,
                Doc("File of disk_filelist labels, one for each of DATA_SOURCES: .npy or text; a list of files gives "
                    "each sample a label of each (see OneHotEncode)."));
  visitor.Field("LABEL_TYPE", &label_type,
                Doc("Labels of the data set, the sample's index, or 0.").OneOf({"standard", "sample_index", "zero"}));
  visitor.Field("REMOVE_IMG_PATH_PREFIX", &remove_img_path_prefix,
                Doc("Beginning of disk_filelist paths that NEW_IMG_PATH_PREFIX replaces."));
  visitor.Field("NEW_IMG_PATH_PREFIX", &new_img_path_prefix, Doc("See REMOVE_IMG_PATH_PREFIX."));
  visitor.Field(
      "BROKEN_IMAGES", &broken_images,
      Doc("What becomes of an image that cannot be read: gray, a grey one takes its place; skip, of TRAIN, the "
          "next sample does in training, with its own label; error, the run ends. (ours)")
          .OneOf({"gray", "skip", "error"}));
  visitor.Field("ENABLE_QUEUE_DATASET", &enable_queue_dataset,
                Doc("A broken image is replaced by a neighbour in the data set instead of a grey one."));
  visitor.Field("MAX_BROKEN_FRACTION", &max_broken_fraction,
                Doc("Share of the first 1000 images, and of all in a test or evaluation, that may be broken before the "
                    "run stops, at least one image where it is above 0; of a part of the data set, such as the share "
                    "of one of several ranks, some more may be, as chance has it; below 1, more than 100 in a row stop "
                    "a training at any time.")
                    .Between(0, 1)
                    .MayChange());
  visitor.Field("EXIF_ORIENTATION", &exif_orientation,
                Doc("Images are turned upright as their EXIF data say; torchvision and VISSL leave them. (ours)"));
  visitor.Field(
      "DECODE", &decode,
      Doc("exact: pixels as Pillow's; fast: a JPEG at a half, a quarter or an eighth of its size where every crop of "
          "the sample is scaled down that much, others with the stored colours repeated instead of smoothed where "
          "pixels share them. (ours)")
          .OneOf({"exact", "fast"}));
  visitor.Field("GRAY_16_BIT", &gray_16_bit,
                Doc("What becomes of the grey values 0 to 65535 of a 16-bit PNG in the 8 bits that an image has here: "
                    "scale, divided by 256; clip, above 255 all are white, as Pillow and so torchvision and VISSL have "
                    "it. (ours)")
                    .OneOf({"scale", "clip"}));
  visitor.Field("CACHE", &cache,
                Doc("What is kept in memory of images that are files or in shards, so that later epochs need not read "
                    "them: none, raw (the files' bytes) or decoded; the batches are the same. (ours)")
                    .OneOf({"none", "raw", "decoded"})
                    .MayChange());
  visitor.Field("CACHE_BYTES", &cache_bytes,
                Doc("The most memory that CACHE takes, of each rank; the images that come first are kept. (ours)")
                    .AtLeast(1)
                    .MayChange()
                    .Unit("bytes"));
  visitor.Field(
      "PATHS_BELOW", &paths_below,
      Doc("Folder below which alone images are opened and folders listed, for lists and links that nobody has "
          "checked; empty: anywhere. (ours)"));
  BatchSizeOptions::VisitFields(visitor);
  visitor.Field("TRANSFORMS", &transforms, Doc("List of transforms, each with its name and parameters."));
  visitor.Field(
      "AUGMENT_ON", &augment_on,
      Doc("Where TRANSFORMS run in train and test phases: host, in the loader's threads; device, where MACHINE.DEVICE "
          "computes, which gets the decoded images and what the threads have drawn for each view. (ours)")
          .OneOf({"host", "device"})
          .MayChange());
  visitor.Field(
      "COLLATE_FUNCTION", &collate_function,
      Doc("What makes views a batch: default_collate takes one view of each image and multicrop_collator several, as "
          "they are; simclr_collator, moco_collator and siamese_collator several of one size; "
          "patch_and_image_collator an image and its patches; multicrop_mixup_collator and cutmixup_collator mix "
          "images; targets_one_hot_default_collator makes a label a row. --list=collators.")
          .OneOf(CollatorNames()));
  visitor.Field("COLLATE_FUNCTION_PARAMS", &collate_function_params, Doc("Parameters of COLLATE_FUNCTION."));
  visitor.Field(
      "INPUT_KEY_NAMES", &input_key_names,
      Doc("What of a collated batch the model gets: data; of patch_and_image_collator images, patches or both; "
          "of several, MODEL.MULTI_INPUT_HEAD_MAPPING gives each a head."));
  visitor.Field("TARGET_KEY_NAMES", &target_key_names, Doc("What the loss gets: label.").OneOf({"label"}));
  visitor.Field("USE_STATEFUL_DISTRIBUTED_SAMPLER", &use_stateful_distributed_sampler,
                Doc("Each rank shuffles a slice of the data set that is its own, instead of sharing all of it."));
  visitor.Field("USE_DEBUGGING_SAMPLER", &use_debugging_sampler,
                Doc("Each rank goes through its slice of the data set in order, the same in every epoch."));
  visitor.Section("STRATIFIED_SAMPLER", &stratified_sampler, Doc("Batches by class."));
  visitor.Section("POWER_LAW_SAMPLER", &power_law_sampler, Doc("A long tail of classes."));
  visitor.Field("MINI_EPOCHS", &mini_epochs,
                Doc("Of TRAIN: epochs that together visit the data set once, each a part of it. (ours)").AtLeast(1));
  visitor.Field("MINI_EPOCH_GROUPS", &mini_epoch_groups,
                Doc("Of MINI_EPOCHS: blocks of the data set within which alone it is shuffled. (ours)").AtLeast(1));
  visitor.Field("DROP_LAST", &drop_last, Doc("Leave out a last batch that is not full."));
  visitor.Field("DATA_LIMIT", &data_limit, Doc("Use this many samples, drawn once by seed; -1: all.").AtLeast(-1));
  visitor.Section("DATA_LIMIT_SAMPLING", &data_limit_sampling, Doc("How DATA_LIMIT draws."));
  visitor.Field(
      "HOLD_OUT_FRACTION", &hold_out_fraction,
      Doc("Share of each class, drawn by DATA_LIMIT_SAMPLING.SEED, that SPLIT test consists of and SPLIT train "
          "lacks, for a data set without a test set of its own; of all together where no class has two; DATA_LIMIT "
          "draws from what SPLIT has then; 0: all samples.")
          .Between(0, 0.9));
  visitor.Field(
      "IMAGE_CHANNELS", &image_channels,
      Doc("Channels of a batch's images: 3, of which grey images fill all; 1 with MODEL.INPUT_TYPE lab, whose "
          "trunk takes one, and Grayscale among TRANSFORMS, as decoding gives 3."));
  visitor.Field(
      "DEFAULT_GRAY_IMG_SIZE", &default_gray_img_size,
      Doc("Side of synthetic images and of the grey ones that replace broken images.").Between(1, 4096).Unit("pixels"));
  visitor.Field("RANDOM_SYNTHETIC_LABELS", &random_synthetic_labels,
                Doc("Classes of synthetic images; 0: no labels.").Between(0, 1 << 20));
}

namespace {

// At most one sampler; MINI_EPOCHS has its own.
absl::Status CheckOneSampler(const DataSplitOptions& options, const ConfigNode& data_split, const ConfigNode& config) {
  const std::pair<const char*, bool> samplers[] = {
      {"USE_DEBUGGING_SAMPLER", options.use_debugging_sampler},
      {"USE_STATEFUL_DISTRIBUTED_SAMPLER", options.use_stateful_distributed_sampler},
      {"STRATIFIED_SAMPLER.ENABLED", options.stratified_sampler.enabled},
      {"POWER_LAW_SAMPLER.ENABLED", options.power_law_sampler.enabled}};
  const char* chosen = nullptr;
  for (const auto& [key, enabled] : samplers) {
    if (!enabled) continue;
    if (chosen != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, chosen), " and ",
                                                     SplitKey(data_split, config, key),
                                                     " are True, expected one of them"));
    }
    chosen = key;
  }
  if (options.mini_epochs == 1 || chosen == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, "MINI_EPOCHS"), " is ",
                                                 options.mini_epochs, ", expected 1 with ", chosen,
                                                 ", which has an order of its own"));
}

bool IsPath(const ConfigNode& node) { return node.is_scalar() && !node.text().empty(); }

absl::Status CheckLabelPaths(const DataSplitOptions& options, const ConfigNode& data_split, const ConfigNode& config) {
  for (const ConfigNode& entry : options.label_paths.items()) {
    const std::vector<ConfigNode>& paths = entry.items();
    if (entry.is_scalar() || (!paths.empty() && std::all_of(paths.begin(), paths.end(), IsPath))) continue;
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, "LABEL_PATHS"), " has ",
                                                   paths.empty() ? entry.Describe() : "a list of other things",
                                                   ", expected a path or a list of paths for each of DATA_SOURCES"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DataSplitOptions> ReadDataSplit(const ConfigNode& data_split, const ConfigNode& config) {
  DataSplitOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(data_split, SplitPath(data_split, config), UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckOneSampler(options, data_split, config));
  SSL_RETURN_IF_ERROR(CheckLabelPaths(options, data_split, config));
  if (options.enable_queue_dataset && options.broken_images != "gray") {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, "ENABLE_QUEUE_DATASET"),
                                                   " is True and ", SplitKey(data_split, config, "BROKEN_IMAGES"),
                                                   " is ", options.broken_images, ", expected one of them"));
  }
  if (options.cache == "decoded" && options.decode == "fast") {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, "CACHE"), " is decoded and ",
                                                   SplitKey(data_split, config, "DECODE"),
                                                   " is fast, expected exact: kept images serve crops of any size"));
  }
  if (options.image_channels != 1 && options.image_channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, config, "IMAGE_CHANNELS"), " is ",
                                                   options.image_channels, ", expected 1 or 3"));
  }
  return options;
}

Grey16 Grey16Of(const DataSplitOptions& options) {
  return options.gray_16_bit == "clip" ? Grey16::kClip : Grey16::kScale;
}

absl::Status CheckAugmentOn(const DataSplitOptions& options, const ConfigNode& data_split, const ConfigNode& config) {
  if (options.augment_on == "host") return absl::OkStatus();
  const ConfigNode* const device = config.FindPath("MACHINE.DEVICE");
  const std::string key = SplitKey(data_split, config, "AUGMENT_ON");
  if (device == nullptr || device->text() != "gpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        key, " is ", options.augment_on, " and ",
        device == nullptr || device->location().file.empty() ? "" : absl::StrCat(device->location().ToString(), ": "),
        "config.MACHINE.DEVICE is cpu, expected gpu, or host"));
  }
  if (options.image_channels == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", options.augment_on, " and ", SplitKey(data_split, config, "IMAGE_CHANNELS"), " is ",
                   options.image_channels, ", expected 3: views that a device makes have three channels"));
}

std::string SplitPath(const ConfigNode& data_split, const ConfigNode& config) {
  for (const char* path : {"DATA.TRAIN", "DATA.TEST"}) {
    if (config.FindPath(path) == &data_split) return absl::StrCat("config.", path);
  }
  return "config.DATA.<split>";
}

std::string SplitKey(const ConfigNode& data_split, const ConfigNode& config, absl::string_view key) {
  const std::string path = absl::StrCat(SplitPath(data_split, config), ".", key);
  const ConfigNode* value = data_split.FindPath(key);
  if (value == nullptr || value->location().file.empty()) return path;
  return absl::StrCat(value->location().ToString(), ": ", path);
}

}  // namespace ssl
