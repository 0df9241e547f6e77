// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/dataset_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/concat_dataset.h"
#include "ssl/data/datasets/label_source.h"
#include "ssl/data/datasets/subset_dataset.h"

namespace ssl {
namespace {

std::vector<int64_t> LabelsOf(const Dataset& dataset) {
  std::vector<int64_t> labels(dataset.size());
  for (int64_t i = 0; i < dataset.size(); ++i) labels[i] = dataset.Label(i);
  return labels;
}

// What DATA_LIMIT draws where it is `limit`: positions of the data set.
absl::StatusOr<std::vector<int64_t>> DrawLimit(int64_t limit, const Dataset& dataset, const DataSplitOptions& options,
                                               const ConfigNode& split, const BuildContext& context) {
  const DataLimitSamplingOptions& sampling = options.data_limit_sampling;
  const int64_t size = dataset.size();
  const int64_t skip = sampling.skip_num_samples;
  if (limit < 1 || limit > size || skip > size - limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(SplitKey(split, context.config, "DATA_LIMIT"), " is ", limit, " and SKIP_NUM_SAMPLES is ", skip,
                     ", expected at least 1 and together at most ", size, ", the samples of ", dataset.description()));
  }
  const auto seed = static_cast<uint32_t>(sampling.seed);
  if (!sampling.is_balanced || limit == size) return DrawSubset(size, limit, skip, seed);
  absl::StatusOr<std::vector<int64_t>> positions = DrawBalancedSubset(LabelsOf(dataset), limit, skip, seed);
  if (positions.ok()) return positions;
  return Annotate(positions.status(), SplitKey(split, context.config, "DATA_LIMIT_SAMPLING.IS_BALANCED"));
}

// The part of the samples that DATA_LIMIT asks for.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyLimit(int64_t limit, std::unique_ptr<Dataset> dataset,
                                                    const DataSplitOptions& options, const ConfigNode& split,
                                                    const BuildContext& context) {
  if (limit < 0) return dataset;
  SSL_ASSIGN_OR_RETURN(std::vector<int64_t> positions, DrawLimit(limit, *dataset, options, split, context));
  if (limit == dataset->size()) return dataset;
  return std::make_unique<SubsetDataset>(std::move(dataset), std::move(positions));
}

// How many samples DATA_LIMIT can draw; balanced, as many of each class as of the smallest one.
int64_t MostDrawn(const Dataset& dataset, const DataLimitSamplingOptions& sampling) {
  const int64_t skip = sampling.skip_num_samples;
  if (!sampling.is_balanced) return dataset.size() - skip;
  std::map<int64_t, int64_t> classes;  // class -> its samples
  for (const int64_t label : LabelsOf(dataset)) ++classes[label];
  int64_t smallest = dataset.size();
  for (const auto& entry : classes) smallest = std::min(smallest, entry.second);
  const auto num_classes = static_cast<int64_t>(classes.size());
  return num_classes * (smallest - (skip + num_classes - 1) / num_classes);
}

// The class of each sample; one for all where no class has two samples, so that none could be divided.
std::vector<int64_t> ClassesToDivide(const Dataset& dataset) {
  std::vector<int64_t> labels = LabelsOf(dataset);
  const std::set<int64_t> distinct(labels.begin(), labels.end());
  return distinct.size() < labels.size() ? labels : std::vector<int64_t>(labels.size(), 0);
}

// Of a test set that evaluations hold out of the training data, one key says how much: that of DATA.TRAIN.
std::string HoldOutKey(const ConfigNode& split, const ConfigNode& config) {
  constexpr char kKey[] = "HOLD_OUT_FRACTION";
  const ConfigNode* train = config.FindPath("DATA.TRAIN");
  const ConfigNode* own = split.Find(kKey);
  const ConfigNode* of_training = train == nullptr ? nullptr : train->Find(kKey);
  const bool is_shared = own != nullptr && of_training != nullptr && *own == *of_training &&
                         own->location().ToString() == of_training->location().ToString();
  return SplitKey(is_shared ? *train : split, config, kKey);
}

// The samples that SPLIT has when HOLD_OUT_FRACTION divides the data set.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyHoldOut(std::unique_ptr<Dataset> dataset, const DataSplitOptions& options,
                                                      const ConfigNode& split, const BuildContext& context) {
  if (options.hold_out_fraction == 0.0) return dataset;
  const auto seed = static_cast<uint32_t>(options.data_limit_sampling.seed);
  std::vector<int64_t> positions =
      DrawHeldOut(ClassesToDivide(*dataset), options.hold_out_fraction, seed, /*held_out=*/options.split == "test");
  if (positions.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        HoldOutKey(split, context.config), " is ", options.hold_out_fraction, ", but ", dataset->description(),
        " has 1 image, expected at least 2, to compare one that is held out with the others; ",
        "add images, or name a test set with config.DATA.TEST.DATA_PATHS"));
  }
  const auto held_out = static_cast<int64_t>(positions.size());
  // Of small classes the rounding shows; once, where the test set is made.
  if (options.split == "test" && held_out > 2 * options.hold_out_fraction * static_cast<double>(dataset->size())) {
    SSL_LOG(INFO) << HoldOutKey(split, context.config) << " is " << options.hold_out_fraction << ": " << held_out
                  << " of " << dataset->size()
                  << " images are held out, as each class of two or more gives at least one";
  }
  return std::make_unique<SubsetDataset>(std::move(dataset), std::move(positions));
}

// DATA_LIMIT, of a part of `whole`: who trains on (nearly) all of it evaluates on what HOLD_OUT_FRACTION leaves of it.
int64_t LimitOfPart(const Dataset& part, int64_t whole, const DataSplitOptions& options, const ConfigNode& split,
                    const BuildContext& context) {
  const int64_t limit = options.data_limit;
  const int64_t most = limit == whole ? part.size() : MostDrawn(part, options.data_limit_sampling);
  if (most < 1 || most >= limit) return limit;
  SSL_LOG(INFO) << SplitKey(split, context.config, "DATA_LIMIT") << " is " << limit
                << ", of which HOLD_OUT_FRACTION leaves " << most;
  return most;
}

// The samples of the split: held out, or left, and of these as many as DATA_LIMIT says.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyParts(std::unique_ptr<Dataset> dataset, const DataSplitOptions& options,
                                                    const ConfigNode& split, const BuildContext& context) {
  int64_t limit = options.data_limit;
  const int64_t whole = dataset->size();
  const bool is_of_part = limit >= 0 && options.hold_out_fraction > 0.0;
  if (is_of_part) SSL_RETURN_IF_ERROR(DrawLimit(limit, *dataset, options, split, context).status());
  SSL_ASSIGN_OR_RETURN(dataset, ApplyHoldOut(std::move(dataset), options, split, context));
  if (is_of_part) limit = LimitOfPart(*dataset, whole, options, split, context);
  return ApplyLimit(limit, std::move(dataset), options, split, context);
}

// Data that may not be read are a mistake of the configuration, as those that are not there: the exit code of a refused
// permission is the run directory's.
absl::Status AsMistake(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  return WithDetail(absl::InvalidArgumentError(status.message()), kDetailErrno, DetailOf(status, kDetailErrno));
}

// The one source of `split`, with its labels.
absl::StatusOr<std::unique_ptr<Dataset>> BuildSource(const ConfigNode& split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(split, context.config));
  absl::StatusOr<std::unique_ptr<Dataset>> dataset =
      context.registries.datasets.Make(options.data_sources.front(), split, context);
  if (dataset.ok()) dataset = ApplyLabelSource(*std::move(dataset), options, split, context);
  if (!dataset.ok()) return AsMistake(dataset.status());
  return dataset;
}

// Lists with an entry for each source, or none.
constexpr const char* kSourceLists[] = {"DATA_SOURCES", "DATA_PATHS", "DATASET_NAMES", "LABEL_SOURCES", "LABEL_PATHS"};

// `split` with the entries of source `i` alone.
absl::StatusOr<ConfigNode> SplitOfSource(const DataSplitOptions& options, const ConfigNode& split,
                                         const ConfigNode& config, size_t i) {
  ConfigNode one = split;
  const size_t count = options.data_sources.size();
  for (const char* key : kSourceLists) {
    const ConfigNode* list = split.Find(key);
    if (list == nullptr || list->items().empty()) continue;
    ConfigNode entry = ConfigNode::List(list->location());
    if (list->items().size() == count) {
      entry.Append(list->items()[i]);
    } else if (key != absl::string_view("DATASET_NAMES") || options.data_paths.empty()) {  // paths need no name
      return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, config, key), " has ", list->items().size(),
                                                     " entries, expected ", count, ", one for each of DATA_SOURCES"));
    }
    one.Set(key, std::move(entry));
  }
  return one;
}

absl::StatusOr<std::unique_ptr<Dataset>> BuildSources(const DataSplitOptions& options, const ConfigNode& split,
                                                      const BuildContext& context) {
  std::vector<std::unique_ptr<Dataset>> parts;
  for (size_t i = 0; i < options.data_sources.size(); ++i) {
    SSL_ASSIGN_OR_RETURN(ConfigNode one, SplitOfSource(options, split, context.config, i));
    // In a tree of its own, in which messages find the place of the split.
    ConfigNode config = context.config;
    const std::string path = SplitPath(split, context.config).substr(sizeof("config.") - 1);
    config.SetPath(path, std::move(one));
    const BuildContext of_part{config,
                               context.registries,
                               context.communicator,
                               context.seed,
                               context.run_directory,
                               context.first_iteration,
                               context.file_system,
                               context.stop};
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> part, BuildSource(*config.FindPath(path), of_part));
    parts.push_back(std::move(part));
  }
  auto joined = std::make_unique<ConcatDataset>(std::move(parts));
  // Who needs labels refuses it; self-supervised training does not.
  if (!joined->label_conflict().empty()) {
    SSL_LOG(INFO) << SplitKey(split, context.config, "DATA_SOURCES")
                  << ": the images have no labels together: " << joined->label_conflict();
  }
  return joined;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> BuildDataset(const ConfigNode& split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(split, context.config));
  if (options.data_sources.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, context.config, "DATA_SOURCES"),
                                                   " is [], expected one of ",
                                                   absl::StrJoin(context.registries.datasets.Names(), ", ")));
  }
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, options.data_sources.size() == 1
                                                             ? BuildSource(split, context)
                                                             : BuildSources(options, split, context));
  return ApplyParts(std::move(dataset), options, split, context);
}

}  // namespace ssl
