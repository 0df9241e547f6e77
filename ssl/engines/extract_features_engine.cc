// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/extract_features_engine.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_layers.h"

namespace ssl {
namespace {

constexpr char kSection[] = "EXTRACT_FEATURES";

class ExtractFeaturesEngine : public Engine {
 public:
  ExtractFeaturesEngine(ExtractFeaturesOptions options, std::vector<FeatureRequest> requests)
      : options_(std::move(options)), requests_(std::move(requests)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    SSL_ASSIGN_OR_RETURN(const EvaluationModel network,
                         MakeEvaluationModel(context, EvaluationWeights::kTrainedOrInitial));
    const FeatureLayers layers = ChooseFeatureLayers(*network.model, requests_, task.precision.autocast);
    const std::string directory =
        options_.output_dir.empty() ? absl::StrCat(context.run_directory, "/features") : options_.output_dir;
    SSL_RETURN_IF_ERROR(context.file_system.CreateDirectories(directory));
    context.results.SetPath("extract_features.directory", ConfigNode::FromString(directory));
    context.results.SetPath("extract_features.layers", ConfigNode::FromStrings(layers.names));
    EngineReport report;
    std::vector<WrittenArray> arrays;
    for (const std::string& split : ConfiguredSplits(context.config)) {
      const absl::Status status = ExtractSplit(split, layers, directory, context, &arrays);
      report.stopped = absl::IsCancelled(status);
      if (report.stopped) break;
      SSL_RETURN_IF_ERROR(status);
    }
    report.summary = FormatArrayTable(directory, arrays);
    return report;
  }

 private:
  absl::Status ExtractSplit(const std::string& split, const FeatureLayers& layers, const std::string& directory,
                            EngineContext& context, std::vector<WrittenArray>* arrays) const {
    const std::string name = absl::AsciiStrToLower(split);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source, MakeSplitSource(split, context));
    SSL_RETURN_IF_ERROR(RemoveFiles(directory, name, context));
    FeatureFileWriter writer({directory, name, context.communicator.rank(), layers.names, options_.chunk_threshold},
                             context.file_system);
    absl::Status status =
        ForEachFeatureBatch(*source, layers.compute, absl::StrCat("features of ", split), context.stop,
                            [&](const FeatureBatch& batch) { return writer.Add(batch); });
    if (status.ok()) status = writer.Finish();
    status = AgreeOnStatus(status, absl::StrCat("features of ", split), context.communicator);
    if (!status.ok()) {
      status.Update(RemoveFiles(directory, name, context));
      return status;
    }
    arrays->insert(arrays->end(), writer.arrays().begin(), writer.arrays().end());
    context.results.SetPath(absl::StrCat("extract_features.", name, "_samples"),
                            ConfigNode::FromInt(source->dataset_size()));
    return absl::OkStatus();
  }

  static absl::Status RemoveFiles(const std::string& directory, const std::string& split, EngineContext& context) {
    absl::Status status;
    if (context.communicator.rank() == 0) status = RemoveFeatureFiles(directory, split, context.file_system);
    return AgreeOnStatus(status, "removing earlier features", context.communicator);
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
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2; []: those that MODEL.FEATURE_EVAL_SETTINGS "
                    "names, or the heads' output (ours)"));
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
