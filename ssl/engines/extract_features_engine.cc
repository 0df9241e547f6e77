// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/extract_features_engine.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/data/read_fault.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/broken_rows.h"
#include "ssl/engines/chosen_folder.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_layers.h"
#include "ssl/engines/feature_staging.h"
#include "ssl/engines/rank_files.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {
namespace {

constexpr char kSection[] = "EXTRACT_FEATURES";
constexpr char kLayersKey[] = "EXTRACT_FEATURES.LAYERS";
constexpr char kPrefix[] = "extract_features";

class ExtractFeaturesEngine : public Engine {
 public:
  ExtractFeaturesEngine(ExtractFeaturesOptions options, std::vector<FeatureRequest> requests)
      : options_(std::move(options)), requests_(std::move(requests)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    return WithEvaluationPlan(kPrefix, context, [this](EngineContext& complete) { return Extract(complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    SSL_RETURN_IF_ERROR(CheckChosenFolder("EXTRACT_FEATURES.OUTPUT_DIR", context));
    return CheckWithEvaluationPlan(context, [this](EngineContext& complete) -> absl::Status {
      SSL_RETURN_IF_ERROR(OpenSplits(complete).status());
      SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeModelToCheck(complete));
      return CheckFeatureNames(*network.model, requests_, kLayersKey, complete.config);
    });
  }

 private:
  // One split: where its images come from and what was written.
  struct Split {
    std::string name;  // "train"
    std::unique_ptr<BatchSource> source;
    std::vector<WrittenArray> arrays;
    int64_t rows = 0;                     // in them
    std::map<int64_t, ReadFault> broken;  // of all ranks
  };

  absl::StatusOr<EngineReport> Extract(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    SSL_ASSIGN_OR_RETURN(std::vector<Split> splits, OpenSplits(context));
    SSL_ASSIGN_OR_RETURN(EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
    SSL_RETURN_IF_ERROR(CheckFeatureNames(*network.model, requests_, kLayersKey, context.config));
    SSL_RETURN_IF_ERROR(MoveToRunDevice(context, &network));
    const std::vector<FeatureRequest> requests =
        requests_.empty() ? UsualFeatures(*network.model, context.config) : requests_;
    const FeatureLayers layers = ChooseFeatureLayers(*network.model, requests, task.precision.autocast);
    if (requests_.empty()) {
      SSL_LOG(INFO) << "evaluation: features of " << absl::StrJoin(layers.names, ", ") << "; config." << kSection
                    << ".LAYERS says otherwise";
    }
    const std::string directory =
        options_.output_dir.empty() ? absl::StrCat(context.run_directory, "/", kFeaturesFolder) : options_.output_dir;
    if (options_.output_dir.empty()) {
      SSL_RETURN_IF_ERROR(CheckOutputFolder({context.run_directory, kFeaturesFolder}));
    }
    // One split is of no use without the other, and would be taken for the whole.
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<FeatureStaging> staging,
                         FeatureStaging::Open(directory, context.file_system, context.communicator));
    std::vector<std::string> names;
    for (Split& split : splits) {
      SSL_RETURN_IF_ERROR(ExtractSplit(layers, staging->path(), context, &split));
      names.push_back(split.name);
    }
    SSL_RETURN_IF_ERROR(staging->Publish(names));
    return Report(splits, layers, directory, {network.weights, network.iteration}, context);
  }

  // Both are opened, and a mistake in either is found, before the first feature is computed.
  static absl::StatusOr<std::vector<Split>> OpenSplits(EngineContext& context) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ConfiguredSplits(context.config));
    std::vector<Split> splits;
    for (const std::string& split : names) {
      SSL_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source, MakeSplitSource(split, context));
      splits.push_back({absl::AsciiStrToLower(split), std::move(source), {}, 0, {}});
    }
    return splits;
  }

  absl::Status ExtractSplit(const FeatureLayers& layers, const std::string& directory, EngineContext& context,
                            Split* split) const {
    const std::string what = absl::StrCat("features of ", split->name);
    FeatureFileWriter writer(
        {directory, split->name, context.communicator.rank(), layers.names, options_.chunk_threshold},
        context.file_system);
    absl::Status status = ForEachFeatureBatch(*split->source, layers, what, context.stop,
                                              [&](const FeatureBatch& batch) { return writer.Add(batch); });
    if (status.ok()) status = writer.Finish();
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, what, context.communicator));
    split->arrays = writer.arrays();
    split->rows = writer.rows();
    SSL_ASSIGN_OR_RETURN(split->broken, BrokenImagesOf(*split->source, context.communicator));
    const auto write = [&] { return WriteLists(directory, *split, context.file_system); };
    return OnRankZero(write, what, context.communicator);
  }

  // What the numbers in the arrays mean, and which rows are none of the data.
  static absl::Status WriteLists(const std::string& directory, const Split& split, FileSystem& file_system) {
    SSL_RETURN_IF_ERROR(WriteBrokenRows(directory, split.name, split.broken, file_system));
    SSL_RETURN_IF_ERROR(WriteClassNames(directory, split.name, split.source->ClassNames(), file_system));
    const Dataset* dataset = DatasetBehind(*split.source);
    return dataset == nullptr ? absl::OkStatus() : WriteImageFiles(directory, split.name, *dataset, file_system);
  }

  static absl::StatusOr<EngineReport> Report(const std::vector<Split>& splits, const FeatureLayers& layers,
                                             const std::string& directory, const EvaluatedWeights& weights,
                                             EngineContext& context) {
    BrokenSplits images;
    for (const Split& split : splits) images.emplace_back(split.name, split.broken);
    const ConfigNode broken = BrokenImagesTree(images);
    ConfigNode results = ConfigNode::Map();
    results.Set("directory", ConfigNode::FromString(directory));
    results.Set("layers", ConfigNode::FromStrings(layers.names));
    std::vector<WrittenArray> arrays;
    std::vector<SplitRows> rows;
    for (const Split& split : splits) {
      rows.push_back({split.name, split.source->dataset_size(), split.rows});
      results.Set(absl::StrCat(split.name, "_samples"), ConfigNode::FromInt(split.source->dataset_size()));
      arrays.insert(arrays.end(), split.arrays.begin(), split.arrays.end());
    }
    results.Set(kBrokenImagesKey, broken);
    SetResults(kPrefix, results, weights, &context.results);
    EngineReport report;
    SSL_ASSIGN_OR_RETURN(report.summary, FormatRankFiles(directory, arrays, rows, context.communicator));
    absl::StrAppend(&report.summary, BrokenRowsLine(broken));
    return report;
  }

  const ExtractFeaturesOptions options_;
  const std::vector<FeatureRequest> requests_;
};

}  // namespace

void ExtractFeaturesOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("OUTPUT_DIR", &output_dir, Doc("where to write; \"\": <run directory>/features"));
  visitor.Field("CHUNK_THRESHOLD", &chunk_threshold,
                Doc("samples after which a file is written; 0: each batch, -1: one file").AtLeast(-1));
  visitor.Field("MAP_FEATURES_TO_IMG_NAME", &map_features_to_img_name, Doc("one file per picture; not supported"));
  visitor.Field("LAYERS", &layers,
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2, and heads for the heads' output; []: those that "
                    "MODEL.FEATURE_EVAL_SETTINGS names, or the last stage (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeExtractFeaturesEngine(const ConfigNode& config,
                                                                  const BuildContext& context) {
  ExtractFeaturesOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (options.map_features_to_img_name) {
    return absl::UnimplementedError(
        absl::StrCat(section.Find("MAP_FEATURES_TO_IMG_NAME")->location().ToString(), ": config.", kSection,
                     ".MAP_FEATURES_TO_IMG_NAME is true, expected false: features are written by position in the data "
                     "set only"));
  }
  SSL_ASSIGN_OR_RETURN(std::vector<FeatureRequest> requests, ParseFeatureRequests(options.layers));
  return std::make_unique<ExtractFeaturesEngine>(std::move(options), std::move(requests));
}

}  // namespace ssl
