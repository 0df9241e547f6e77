// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/dataset_builder.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/label_source.h"
#include "ssl/data/datasets/subset_dataset.h"

namespace ssl {
namespace {

absl::StatusOr<std::vector<int64_t>> DrawPositions(const Dataset& dataset, int64_t count,
                                                   const DataLimitSamplingOptions& sampling) {
  const auto seed = static_cast<uint32_t>(sampling.seed);
  if (!sampling.is_balanced) return DrawSubset(dataset.size(), count, sampling.skip_num_samples, seed);
  std::vector<int64_t> labels(dataset.size());
  for (int64_t i = 0; i < dataset.size(); ++i) labels[i] = dataset.Label(i);
  return DrawBalancedSubset(labels, count, sampling.skip_num_samples, seed);
}

// The part of the samples that DATA_LIMIT asks for.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyLimit(std::unique_ptr<Dataset> dataset, const DataSplitOptions& options,
                                                    const ConfigNode& split, const BuildContext& context) {
  if (options.data_limit < 0) return dataset;
  const int64_t size = dataset->size();
  const int64_t skip = options.data_limit_sampling.skip_num_samples;
  if (options.data_limit == 0 || options.data_limit > size || skip > size - options.data_limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        SplitKey(split, context.config, "DATA_LIMIT"), " is ", options.data_limit, " and SKIP_NUM_SAMPLES is ", skip,
        ", expected at least 1 and together at most ", size, ", the samples of ", dataset->description()));
  }
  if (options.data_limit == size) return dataset;
  absl::StatusOr<std::vector<int64_t>> positions =
      DrawPositions(*dataset, options.data_limit, options.data_limit_sampling);
  if (!positions.ok()) {
    return Annotate(positions.status(), SplitKey(split, context.config, "DATA_LIMIT_SAMPLING.IS_BALANCED"));
  }
  return std::make_unique<SubsetDataset>(std::move(dataset), *std::move(positions));
}

// The samples that SPLIT has when HOLD_OUT_FRACTION divides the data set.
absl::StatusOr<std::unique_ptr<Dataset>> ApplyHoldOut(std::unique_ptr<Dataset> dataset, const DataSplitOptions& options,
                                                      const ConfigNode& split, const BuildContext& context) {
  if (options.hold_out_fraction == 0.0) return dataset;
  std::vector<int64_t> labels(dataset->size());
  for (int64_t i = 0; i < dataset->size(); ++i) labels[i] = dataset->Label(i);
  const auto seed = static_cast<uint32_t>(options.data_limit_sampling.seed);
  std::vector<int64_t> positions =
      DrawHeldOut(labels, options.hold_out_fraction, seed, /*held_out=*/options.split == "test");
  if (positions.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, context.config, "HOLD_OUT_FRACTION"), " is ",
                                                   options.hold_out_fraction, ", but no class of ",
                                                   dataset->description(),
                                                   " has 2 samples to divide; add images, or "
                                                   "name a test set with config.DATA.TEST.DATA_PATHS"));
  }
  return std::make_unique<SubsetDataset>(std::move(dataset), std::move(positions));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> BuildDataset(const ConfigNode& split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(split, context.config));
  SSL_RETURN_IF_ERROR(CheckSingle("DATA_SOURCES", options.data_sources, split, context));
  if (options.data_sources.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, context.config, "DATA_SOURCES"),
                                                   " is [], expected one of ",
                                                   absl::StrJoin(context.registries.datasets.Names(), ", ")));
  }
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                       context.registries.datasets.Make(options.data_sources.front(), split, context));
  SSL_ASSIGN_OR_RETURN(dataset, ApplyLabelSource(std::move(dataset), options, split, context));
  SSL_ASSIGN_OR_RETURN(dataset, ApplyLimit(std::move(dataset), options, split, context));
  return ApplyHoldOut(std::move(dataset), options, split, context);
}

}  // namespace ssl
