// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/class_sampler_builder.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/samplers/class_index.h"
#include "ssl/data/samplers/power_law_sampler.h"
#include "ssl/data/samplers/stratified_sampler.h"

namespace ssl {
namespace {

absl::Status Misfit(PlaceOfKey place_of, int64_t classes_per_batch, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(place_of("STRATIFIED_SAMPLER.CLASSES_PER_BATCH"), " is ",
                                                 classes_per_batch, ", expected ", expected));
}

int64_t SmallestClass(const ClassIndex& classes) {
  size_t smallest = classes.front().size();
  for (const std::vector<int64_t>& samples : classes) smallest = std::min(smallest, samples.size());
  return static_cast<int64_t>(smallest);
}

// CLASSES_PER_BATCH is of a rank's batch, or, with UNIQUE_CLASSES, of all ranks' together.
absl::StatusOr<std::unique_ptr<Sampler>> BuildStratified(const DataSplitOptions& split, ClassIndex classes,
                                                         const RankSeed& rank_seed, PlaceOfKey place_of) {
  const StratifiedSamplerSettings& settings = split.stratified_sampler;
  const int64_t wanted = settings.classes_per_batch;
  const int64_t count = static_cast<int64_t>(classes.size());
  if (wanted > count || (!settings.unique_classes && count % wanted != 0)) {
    return Misfit(place_of, wanted, absl::StrCat("a divisor of ", count, ", the number of classes"));
  }
  if (settings.unique_classes && wanted % rank_seed.world_size != 0) {
    return Misfit(place_of, wanted, absl::StrCat("a multiple of ", rank_seed.world_size, ", the number of ranks"));
  }
  StratifiedSamplerOptions options;
  options.world_size = rank_seed.world_size;
  options.rank = rank_seed.rank;
  options.seed = rank_seed.seed;
  options.unique = settings.unique_classes;
  options.classes = options.unique ? wanted / rank_seed.world_size : wanted;
  if (split.batch_size_per_replica % options.classes != 0) {
    return Misfit(place_of, wanted,
                  absl::StrCat("a rank's classes of a batch, ", options.classes, ", to divide BATCHSIZE_PER_REPLICA, ",
                               split.batch_size_per_replica));
  }
  options.samples_per_class = split.batch_size_per_replica / options.classes;
  const int64_t needed = options.unique ? options.samples_per_class : options.samples_per_class * options.world_size;
  if (const int64_t smallest = SmallestClass(classes); needed > smallest) {
    return Misfit(place_of, wanted,
                  absl::StrCat("one with at most ", smallest, " samples of a class in a batch, the smallest class; ",
                               "these are ", needed, " of all ranks"));
  }
  options.class_index = std::move(classes);
  // As VISSL: whole passes over the classes, about STEP_PER_EPOCH batches, and at least one.
  options.passes = std::max<int64_t>(1, settings.step_per_epoch / StratifiedSampler(options).batches_per_pass());
  return std::make_unique<StratifiedSampler>(std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sampler>> BuildClassSampler(const DataSplitOptions& split, const Dataset& dataset,
                                                           const RankSeed& rank_seed, PlaceOfKey place_of) {
  if (!split.stratified_sampler.enabled && !split.power_law_sampler.enabled) return std::unique_ptr<Sampler>();
  const char* enabled = split.stratified_sampler.enabled ? "STRATIFIED_SAMPLER.ENABLED" : "POWER_LAW_SAMPLER.ENABLED";
  absl::StatusOr<ClassIndex> classes = MakeClassIndex(dataset);
  if (!classes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(place_of(enabled), " is True, but ", classes.status().message()));
  }
  if (split.stratified_sampler.enabled) return BuildStratified(split, *std::move(classes), rank_seed, place_of);
  return std::make_unique<PowerLawSampler>(
      PowerLawSamplerOptions{*std::move(classes), rank_seed.world_size, rank_seed.rank, rank_seed.seed,
                             split.batch_size_per_replica, split.power_law_sampler.power});
}

}  // namespace ssl
