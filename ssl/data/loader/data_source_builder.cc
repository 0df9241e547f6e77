// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/data_source_builder.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/core/phases_builder.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/loader/source_memory.h"
#include "ssl/data/samplers/class_sampler_builder.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/samplers/mini_epoch_sampler.h"
#include "ssl/data/samplers/slice_sampler.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

LabelType LabelTypeOf(const DataSplitOptions& options) {
  if (options.label_type == "sample_index") return LabelType::kSampleIndex;
  return options.label_type == "zero" ? LabelType::kZero : LabelType::kStandard;
}

// `dataset`, or `most_samples` of its samples when it has more; -1: all.
std::unique_ptr<Dataset> Bounded(std::unique_ptr<Dataset> dataset, int64_t most_samples, int64_t seed) {
  if (most_samples < 0 || dataset->size() <= most_samples) return dataset;
  std::vector<int64_t> positions = DrawSubset(dataset->size(), most_samples, 0, static_cast<uint32_t>(seed));
  return std::make_unique<SubsetDataset>(std::move(dataset), std::move(positions));
}

void WarnOfPassedOver(const Dataset& dataset) {
  for (const std::string& what : dataset.PassedOver()) {
    SSL_LOG(WARNING) << dataset.description() << ": passed over: " << what;
  }
}

// Tests and evaluations read the images as they lie there.
void TellOrder(const Dataset& dataset) {
  BrokenImages* broken = CountOf(dataset);
  if (broken != nullptr) broken->WillReadInOrder();
}

// A data set under the transforms of `transforms_split`.
absl::StatusOr<Pipeline> BuildPipeline(const ConfigNode& data_split, const ConfigNode& transforms_split,
                                       const BuildContext& context, int64_t most_samples = -1) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions data, ReadDataSplit(data_split, context.config));
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions transforms, ReadDataSplit(transforms_split, context.config));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, BuildDataset(data_split, context));
  dataset = Bounded(std::move(dataset), most_samples, data.data_limit_sampling.seed);
  // Each of several ranks counts the broken images that it meets itself: its share of an epoch.
  const int64_t ranks = context.communicator.size();
  dataset->WillRead((dataset->size() + ranks - 1) / ranks);
  SSL_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<Transform>> list,
      MakeTransforms(transforms.transforms, SplitKey(transforms_split, context.config, "TRANSFORMS"), context));
  Pipeline pipeline(std::move(dataset), std::move(list), LabelTypeOf(data), static_cast<uint64_t>(context.seed));
  if (data.enable_queue_dataset) pipeline.set_replacement(Replacement::kImage);
  return pipeline;
}

// Lets the data set keep its images as CACHE says, which is worth it where they are read in every epoch.
absl::Status ApplyCache(const DataSplitOptions& split, const ConfigNode& node, const BuildContext& context,
                        Pipeline* pipeline) {
  if (split.cache == "none") return absl::OkStatus();
  SSL_RETURN_IF_ERROR(AdmitCache(split, node, context));
  pipeline->KeepInMemory({split.cache == "raw" ? CacheContent::kRaw : CacheContent::kDecoded, split.cache_bytes});
  return absl::OkStatus();
}

// Whether INPUT_KEY_NAMES are names of `inputs`, each once, and there is one target.
absl::Status CheckKeys(const DataSplitOptions& split, const std::vector<CollatedInput>& inputs, const ConfigNode& node,
                       const BuildContext& context) {
  std::vector<std::string> known;
  for (const CollatedInput& input : inputs) known.push_back(input.name);
  const std::vector<std::string>& keys = split.input_key_names;
  const std::set<std::string> different(keys.begin(), keys.end());
  const bool are_known = std::all_of(keys.begin(), keys.end(), [&known](const std::string& key) {
    return std::find(known.begin(), known.end(), key) != known.end();
  });
  if (!are_known || keys.empty() || different.size() != keys.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(node, context.config, "INPUT_KEY_NAMES"), " is [", absl::StrJoin(keys, ", "),
                     "], expected ", known.size() == 1 ? "" : "one or more of ", absl::StrJoin(known, ", "),
                     ", which COLLATE_FUNCTION ", split.collate_function, " makes"));
  }
  if (split.target_key_names.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(node, context.config, "TARGET_KEY_NAMES"), " has ",
                                                 split.target_key_names.size(),
                                                 " names, expected [label]: no loss takes several targets; a list of "
                                                 "files in LABEL_PATHS, with OneHotEncode among "
                                                 "TRANSFORMS, gives a sample several labels"));
}

absl::StatusOr<DataLoaderOptions> BuildLoaderOptions(const DataSplitOptions& split, const ConfigNode& node,
                                                     const BuildContext& context) {
  DataOptions data;
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("DATA"), "config.DATA", UnknownKeys::kIgnore, &data));
  DataLoaderOptions options;
  options.batch_size = split.batch_size_per_replica;
  options.image_channels = static_cast<int>(split.image_channels);
  SSL_ASSIGN_OR_RETURN(options.collator, MakeCollator(split.collate_function, split.collate_function_params,
                                                      SplitPath(node, context.config) + ".COLLATE_FUNCTION_PARAMS"));
  SSL_RETURN_IF_ERROR(CheckKeys(split, options.collator->inputs(), node, context));
  options.input_keys = split.input_key_names;
  options.num_workers = static_cast<int>(data.num_dataloader_workers);
  return options;
}

// Those of a phase, whose batches go where the step computes.
absl::StatusOr<DataLoaderOptions> BuildPhaseLoaderOptions(const DataSplitOptions& split, const ConfigNode& node,
                                                          const BuildContext& context) {
  MachineOptions machine;
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("MACHINE"), "config.MACHINE", UnknownKeys::kIgnore, &machine));
  SSL_ASSIGN_OR_RETURN(DataLoaderOptions options, BuildLoaderOptions(split, node, context));
  options.for_accelerator = machine.device != "cpu";
  return options;
}

// Where each sample counts by itself.
absl::Status CheckNotMixed(const DataLoaderOptions& options, const DataSplitOptions& split, const ConfigNode& node,
                           const BuildContext& context, const char* whose) {
  if (!options.collator->mixes_samples()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(SplitKey(node, context.config, "COLLATE_FUNCTION"), " is ",
                                                 split.collate_function, ", which mixes samples, but ", whose,
                                                 " looks at each by itself; expected default_collate or "
                                                 "multicrop_collator, with TRANSFORMS for it in config.DATA.TEST"));
}

// Lets a device make the views, where AUGMENT_ON says so.
absl::Status ApplyAugmentOn(const DataSplitOptions& split, const Pipeline& pipeline, const ConfigNode& node,
                            const BuildContext& context, DataLoaderOptions* options) {
  options->augments_on_device = split.augment_on == "device";
  if (!options->augments_on_device) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(CheckAugmentOn(split, node, context.config));
  const std::string key = SplitKey(node, context.config, "AUGMENT_ON");
  if (options->collator->mixes_samples() || options->collator->inputs().size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " is device and ", SplitKey(node, context.config, "COLLATE_FUNCTION"), " is ",
                     split.collate_function, ", expected one that keeps views as they are, or host"));
  }
  const size_t without = pipeline.first_without_plan();
  if (without == split.transforms.items().size()) return absl::OkStatus();
  const ConfigNode& entry = split.transforms.items()[without];
  return absl::InvalidArgumentError(
      absl::StrCat(entry.location().ToString(), ": ", SplitPath(node, context.config), ".TRANSFORMS.", without, " is ",
                   entry.Find("name")->text(), ", which only the host can do, and ", key, " is device, expected host"));
}

// The sampler is asked by phase, and test phases visit nothing of this split.
absl::StatusOr<std::vector<int64_t>> MiniEpochOfPhases(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  const RunOptions& run = task.run;
  std::vector<int64_t> mini_epochs;
  int64_t train_phases = 0;
  for (const Phase& phase : PhasesBuilder{task.num_epochs, TestCadence(run), run.test_model, run.test_only}.Build()) {
    mini_epochs.push_back(train_phases);
    if (phase.train) ++train_phases;
  }
  return mini_epochs;
}

absl::StatusOr<std::unique_ptr<Sampler>> BuildMiniEpochSampler(const DataSplitOptions& split, int64_t size,
                                                               const BuildContext& context) {
  MiniEpochSamplerOptions options{size,         context.communicator.size(), context.communicator.rank(),
                                  context.seed, split.mini_epochs,           split.mini_epoch_groups};
  SSL_ASSIGN_OR_RETURN(options.mini_epoch_of, MiniEpochOfPhases(context));
  return std::make_unique<MiniEpochSampler>(std::move(options));
}

// shuffle: in orders that differ from epoch to epoch; USE_DEBUGGING_SAMPLER never does.
std::unique_ptr<Sampler> BuildSampler(const DataSplitOptions& split, const Pipeline& pipeline, bool shuffle,
                                      const BuildContext& context) {
  const int64_t size = pipeline.dataset().size();
  const int64_t world = context.communicator.size();
  const int64_t rank = context.communicator.rank();
  if (split.use_debugging_sampler || split.use_stateful_distributed_sampler) {
    shuffle = shuffle && !split.use_debugging_sampler;
    return std::make_unique<SliceSampler>(SliceSamplerOptions{size, world, rank, context.seed, shuffle});
  }
  return std::make_unique<DistributedSampler>(DistributedSamplerOptions{size, world, rank, context.seed, shuffle});
}

using AdmitMemory = absl::Status(const BatchMemory& batches, const ConfigNode& node, const BuildContext& context);

// node: of the split that describes the batches. Errors of the loader, which knows no configuration, get the place of
// its transforms: but for an image that cannot be read, of which the data set tells the key.
absl::StatusOr<std::unique_ptr<BatchSource>> BuildLoader(Pipeline pipeline, std::unique_ptr<Sampler> sampler,
                                                         const DataLoaderOptions& options, const ConfigNode& node,
                                                         AdmitMemory* admit, const BuildContext& context) {
  absl::Status admitted;
  const auto ask = [&](const BatchMemory& batches) { return admitted = admit(batches, node, context); };
  absl::StatusOr<std::unique_ptr<DataLoader>> loader =
      DataLoader::Create(std::move(pipeline), std::move(sampler), options, ask);
  SSL_RETURN_IF_ERROR(admitted);
  if (absl::IsDataLoss(loader.status())) return loader.status();
  if (!loader.ok()) {
    const std::string transforms = SplitKey(node, context.config, "TRANSFORMS");
    const std::string where = SplitKey(node, context.config, "AUGMENT_ON");
    return Annotate(loader.status(),
                    options.augments_on_device ? absl::StrCat(transforms, " (", where, " is device)") : transforms);
  }
  return std::unique_ptr<BatchSource>(*std::move(loader));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MakePhaseSource(const ConfigNode& data_split,
                                                             const BuildContext& context) {
  const bool is_test = &data_split == context.config.FindPath("DATA.TEST");
  return is_test ? MakeTestSource(data_split, context) : MakeTrainingSource(data_split, context);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingSource(const ConfigNode& data_split,
                                                                const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  SSL_ASSIGN_OR_RETURN(Pipeline pipeline, BuildPipeline(data_split, data_split, context));
  WarnOfPassedOver(pipeline.dataset());
  SSL_RETURN_IF_ERROR(ApplyCache(split, data_split, context, &pipeline));
  if (split.broken_images == "skip") pipeline.set_replacement(Replacement::kSample);
  SSL_ASSIGN_OR_RETURN(DataLoaderOptions options, BuildPhaseLoaderOptions(split, data_split, context));
  options.drop_last = split.drop_last;
  SSL_RETURN_IF_ERROR(ApplyAugmentOn(split, pipeline, data_split, context, &options));
  std::unique_ptr<Sampler> sampler;
  if (split.mini_epochs > 1) {
    SSL_ASSIGN_OR_RETURN(sampler, BuildMiniEpochSampler(split, pipeline.dataset().size(), context));
  } else {
    const RankSeed rank_seed{context.communicator.size(), context.communicator.rank(), context.seed};
    const auto place_of = [&](absl::string_view key) { return SplitKey(data_split, context.config, key); };
    SSL_ASSIGN_OR_RETURN(sampler, BuildClassSampler(split, pipeline.dataset(), rank_seed, place_of));
    if (sampler == nullptr) sampler = BuildSampler(split, pipeline, /*shuffle=*/true, context);
  }
  if (split.batch_size_per_replica > sampler->size()) {
    const std::string part = split.mini_epochs == 1
                                 ? ""
                                 : absl::StrCat("one of ", split.mini_epochs, " parts (",
                                                SplitKey(data_split, context.config, "MINI_EPOCHS"), ") of ");
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(data_split, context.config, "BATCHSIZE_PER_REPLICA"), " is ",
                     split.batch_size_per_replica, ", expected at most ", sampler->size(), ", the samples of each of ",
                     context.communicator.size(), " ranks in ", part, pipeline.dataset().description()));
  }
  return BuildLoader(std::move(pipeline), std::move(sampler), options, data_split, &AdmitBatches, context);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTestSource(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  SSL_ASSIGN_OR_RETURN(Pipeline pipeline, BuildPipeline(data_split, data_split, context));
  WarnOfPassedOver(pipeline.dataset());
  TellOrder(pipeline.dataset());
  SSL_ASSIGN_OR_RETURN(DataLoaderOptions options, BuildPhaseLoaderOptions(split, data_split, context));
  if (split.mini_epochs > 1) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "MINI_EPOCHS"), " is ",
                                                   split.mini_epochs, ", expected 1: a test phase visits all samples"));
  }
  SSL_RETURN_IF_ERROR(CheckNotMixed(options, split, data_split, context, "a test phase"));
  if (split.broken_images == "skip") {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(data_split, context.config, "BROKEN_IMAGES"),
                     " is skip, expected gray or error: a test phase visits all samples"));
  }
  if (split.stratified_sampler.enabled || split.power_law_sampler.enabled) {
    const char* key = split.stratified_sampler.enabled ? "STRATIFIED_SAMPLER.ENABLED" : "POWER_LAW_SAMPLER.ENABLED";
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, key),
                                                   " is True, expected False: a test phase visits all samples"));
  }
  SSL_RETURN_IF_ERROR(ApplyCache(split, data_split, context, &pipeline));
  options.drop_last = split.drop_last;
  SSL_RETURN_IF_ERROR(ApplyAugmentOn(split, pipeline, data_split, context, &options));
  std::unique_ptr<Sampler> sampler = BuildSampler(split, pipeline, /*shuffle=*/false, context);
  return BuildLoader(std::move(pipeline), std::move(sampler), options, data_split, &AdmitBatches, context);
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeEvaluationSource(const ConfigNode& data_split,
                                                                  const ConfigNode& transforms_split,
                                                                  const BuildContext& context, int64_t most_samples) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(transforms_split, context.config));
  SSL_ASSIGN_OR_RETURN(Pipeline pipeline, BuildPipeline(data_split, transforms_split, context, most_samples));
  TellOrder(pipeline.dataset());
  // Of training data, and a part that is held out of them, the training has told.
  const ConfigNode* hold_out = data_split.Find("HOLD_OUT_FRACTION");
  const bool is_part = hold_out != nullptr && hold_out->AsDouble().value_or(0.0) > 0.0;
  if (&data_split == context.config.FindPath("DATA.TEST") && !is_part) WarnOfPassedOver(pipeline.dataset());
  SSL_ASSIGN_OR_RETURN(const DataLoaderOptions options, BuildLoaderOptions(split, transforms_split, context));
  SSL_RETURN_IF_ERROR(CheckNotMixed(options, split, transforms_split, context, "an evaluation"));
  // Every sample counts here, so that the samplers that leave out a tail are not asked for.
  auto sampler = std::make_unique<DistributedSampler>(
      DistributedSamplerOptions{pipeline.dataset().size(), context.communicator.size(), context.communicator.rank(),
                                context.seed, /*shuffle=*/false});
  return BuildLoader(std::move(pipeline), std::move(sampler), options, transforms_split, &AdmitEvaluationBatches,
                     context);
}

}  // namespace ssl
