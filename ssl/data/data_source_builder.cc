// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/data_source_builder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/data/data_loader.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/subset_dataset.h"
#include "ssl/data/pipeline.h"
#include "ssl/data/samplers/distributed_sampler.h"
#include "ssl/data/transform.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

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
  std::vector<int64_t> positions =
      DrawSubset(size, options.data_limit, skip, static_cast<uint32_t>(options.data_limit_sampling.seed));
  return std::make_unique<SubsetDataset>(std::move(dataset), std::move(positions));
}

absl::StatusOr<std::unique_ptr<Dataset>> BuildDataset(const ConfigNode& split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions options, ReadDataSplit(split, context.config));
  if (options.data_sources.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, context.config, "DATA_SOURCES"), " is [",
                                                   absl::StrJoin(options.data_sources, ", "), "], expected one of ",
                                                   absl::StrJoin(context.registries.datasets.Names(), ", ")));
  }
  if (!options.label_sources.empty() && options.label_sources != options.data_sources) {
    return absl::InvalidArgumentError(absl::StrCat(
        SplitKey(split, context.config, "LABEL_SOURCES"), " is [", absl::StrJoin(options.label_sources, ", "),
        "], expected nothing or [", options.data_sources.front(), "] as DATA_SOURCES"));
  }
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                       context.registries.datasets.Make(options.data_sources.front(), split, context));
  return ApplyLimit(std::move(dataset), options, split, context);
}

absl::StatusOr<std::vector<std::unique_ptr<Transform>>> BuildTransforms(const ConfigNode& list, const ConfigNode& split,
                                                                        const BuildContext& context) {
  std::vector<std::unique_ptr<Transform>> transforms;
  for (size_t i = 0; i < list.items().size(); ++i) {
    const ConfigNode& entry = list.items()[i];
    const ConfigNode* name = entry.Find("name");
    if (name == nullptr || !name->is_scalar()) {
      return absl::InvalidArgumentError(absl::StrCat(SplitKey(split, context.config, "TRANSFORMS"), ".", i, " is ",
                                                     entry.Describe(), ", expected a map with a name"));
    }
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Transform> transform,
                         context.registries.transforms.Make(name->text(), entry, context));
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

LabelType LabelTypeOf(const DataSplitOptions& options) {
  if (options.label_type == "sample_index") return LabelType::kSampleIndex;
  return options.label_type == "zero" ? LabelType::kZero : LabelType::kStandard;
}

// A data set under the transforms of `transforms_split`.
absl::StatusOr<Pipeline> BuildPipeline(const ConfigNode& data_split, const ConfigNode& transforms_split,
                                       const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions data, ReadDataSplit(data_split, context.config));
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions transforms, ReadDataSplit(transforms_split, context.config));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, BuildDataset(data_split, context));
  SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Transform>> list,
                       BuildTransforms(transforms.transforms, transforms_split, context));
  return Pipeline(std::move(dataset), std::move(list), LabelTypeOf(data), static_cast<uint64_t>(context.seed));
}

absl::StatusOr<DataLoaderOptions> BuildLoaderOptions(const DataSplitOptions& split, const BuildContext& context) {
  DataOptions data;
  if (const ConfigNode* node = context.config.Find("DATA"); node != nullptr) {
    SSL_RETURN_IF_ERROR(ReadOptions(*node, "config.DATA", UnknownKeys::kIgnore, &data));
  }
  DataLoaderOptions options;
  options.batch_size = split.batch_size_per_replica;
  options.image_channels = static_cast<int>(split.image_channels);
  options.collate_function = split.collate_function;
  options.num_workers = static_cast<int>(data.num_dataloader_workers);
  return options;
}

DistributedSamplerOptions SamplerOptions(const Pipeline& pipeline, const BuildContext& context) {
  DistributedSamplerOptions options;
  options.dataset_size = pipeline.dataset().size();
  options.world_size = context.communicator.size();
  options.rank = context.communicator.rank();
  options.seed = context.seed;
  return options;
}

// Errors of the loader, which knows no configuration, get the place of the split.
absl::StatusOr<std::unique_ptr<BatchSource>> BuildLoader(Pipeline pipeline, const DistributedSamplerOptions& sampler,
                                                         const DataLoaderOptions& options, const std::string& place) {
  absl::StatusOr<std::unique_ptr<DataLoader>> loader =
      DataLoader::Create(std::move(pipeline), std::make_unique<DistributedSampler>(sampler), options);
  if (!loader.ok()) return Annotate(loader.status(), place);
  return std::unique_ptr<BatchSource>(*std::move(loader));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingSource(const ConfigNode& data_split,
                                                                const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  SSL_ASSIGN_OR_RETURN(Pipeline pipeline, BuildPipeline(data_split, data_split, context));
  SSL_ASSIGN_OR_RETURN(DataLoaderOptions options, BuildLoaderOptions(split, context));
  options.drop_last = split.drop_last;
  DistributedSamplerOptions sampler = SamplerOptions(pipeline, context);
  const int64_t samples = DistributedSampler(sampler).size();
  if (split.batch_size_per_replica > samples) {
    return absl::InvalidArgumentError(absl::StrCat(SplitKey(data_split, context.config, "BATCHSIZE_PER_REPLICA"),
                                                   " is ", split.batch_size_per_replica, ", expected at most ", samples,
                                                   ", the samples of each of ", sampler.world_size, " ranks in ",
                                                   pipeline.dataset().description()));
  }
  return BuildLoader(std::move(pipeline), sampler, options, SplitKey(data_split, context.config, "TRANSFORMS"));
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeEvaluationSource(const ConfigNode& data_split,
                                                                  const ConfigNode& transforms_split,
                                                                  const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(transforms_split, context.config));
  SSL_ASSIGN_OR_RETURN(Pipeline pipeline, BuildPipeline(data_split, transforms_split, context));
  SSL_ASSIGN_OR_RETURN(const DataLoaderOptions options, BuildLoaderOptions(split, context));
  DistributedSamplerOptions sampler = SamplerOptions(pipeline, context);
  sampler.shuffle = false;
  return BuildLoader(std::move(pipeline), sampler, options, SplitKey(transforms_split, context.config, "TRANSFORMS"));
}

}  // namespace ssl
