// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/label_predictions_engine.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/method.h"
#include "ssl/core/renumbered_source.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"
#include "ssl/engines/accuracy_remarks.h"
#include "ssl/engines/array_set.h"
#include "ssl/engines/checkpoint_settings.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_layers.h"
#include "ssl/engines/rank_files.h"
#include "ssl/engines/run_files.h"
#include "ssl/hooks/labelled_features.h"

namespace ssl {
namespace {

constexpr char kPrefix[] = "extract_label_predictions";

// What the engine reads of a section that the meters declare.
struct AccuracyMeterView : Options {
  std::vector<int64_t> topk_values = {1};
  std::vector<std::string> meter_names;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("topk_values", &topk_values, Doc("k of the accuracies").AtLeast(1));
    visitor.Field("meter_names", &meter_names, Doc("one for each head"));
  }
};

// Of one head, per batch.
struct HeadPredictions {
  std::vector<at::Tensor> classes;        // [B, k]
  std::vector<at::Tensor> probabilities;  // [B, k]
};

// Everything about one split.
struct SplitPredictions {
  std::vector<HeadPredictions> heads;
  std::vector<at::Tensor> labels;
  std::vector<at::Tensor> indices;
};

// What each head gives, a row of scores for each image.
FeatureLayers HeadScores(Model& model, Autocast autocast) {
  FeatureLayers heads;
  heads.device = DeviceOf(model);
  heads.compute = [&model, autocast, device = heads.device](const at::Tensor& images) {
    const AutocastScope scope(autocast);
    std::vector<at::Tensor> outputs = model.Forward({images.to(device)});
    for (size_t head = 0; head < outputs.size(); ++head) {
      TORCH_CHECK_VALUE(outputs[head].dim() == 2, "extract_label_predictions: head ", head, " gives [",
                        absl::StrJoin(outputs[head].sizes(), ", "),
                        "], expected [batch, classes]; check config.MODEL.HEAD.PARAMS");
      outputs[head] = outputs[head].to(at::kCPU, at::kFloat);
    }
    return outputs;
  };
  return heads;
}

absl::Status AddBatch(const FeatureBatch& batch, int64_t topk, SplitPredictions* all) {
  all->heads.resize(batch.features.size());
  for (size_t head = 0; head < batch.features.size(); ++head) {
    const at::Tensor& scores = batch.features[head];
    const int64_t k = std::min(topk, scores.size(1));
    const auto [probabilities, classes] = at::softmax(scores, 1).topk(k, 1);
    all->heads[head].classes.push_back(classes);
    all->heads[head].probabilities.push_back(probabilities);
  }
  // Both may lie in the loader's buffers.
  if (batch.labels.defined()) all->labels.push_back(batch.labels.clone());
  all->indices.push_back(batch.indices.clone());
  return absl::OkStatus();
}

std::vector<std::string> HeadNames(const AccuracyMeterView& meter, const Model& model, size_t heads) {
  if (meter.meter_names.size() == heads) return meter.meter_names;
  const std::vector<FeatureRequest> configured = model.configured_features();
  if (configured.size() == heads) return LayerNames(configured);
  return LayerNames(std::vector<FeatureRequest>(heads, FeatureRequest{"heads", {}, true}));
}

// What a self-supervised head gives would pass for scores, and for predictions of classes that nobody trained. A
// configuration may name no loss that could be made here; then nothing is known.
absl::Status CheckScoresClasses(const EngineContext& context) {
  const ConfigNode* name = context.config.FindPath("LOSS.name");
  if (name == nullptr) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<Method>> method = context.registries.methods.Make(
      name->text(), context.config.Section(absl::StrCat("LOSS.", name->text())), MakeBuildContext(context, /*seed=*/0));
  if (!method.ok() || (*method)->scores_classes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name->location().ToString(), ": config.LOSS.name is ", name->text(),
      ", whose heads give embeddings and predict no ",
      "labels, expected a loss with labels, such as cross_entropy_multiple_output_single_target; "
      "engine_name=extract_features with config.EXTRACT_FEATURES.LAYERS=[heads] writes what the heads give"));
}

class LabelPredictionsEngine : public Engine {
 public:
  explicit LabelPredictionsEngine(AccuracyMeterView meter)
      : meter_(std::move(meter)), topk_(*std::max_element(meter_.topk_values.begin(), meter_.topk_values.end())) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    return WithEvaluationPlan(kPrefix, context, [this](EngineContext& complete) { return PredictAll(complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    return CheckWithEvaluationPlan(context, [](EngineContext& complete) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(complete.config));
      SSL_ASSIGN_OR_RETURN(const Sources sources, OpenSources(complete));
      SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeModelToCheck(complete));
      const absl::Status tried =
          TryFirstImage(*sources.back().second, HeadScores(*network.model, task.precision.autocast), "first image",
                        LabelNeed::kOptional);
      return AgreeOnStatus(tried, "first image", complete.communicator);
    });
  }

 private:
  using Sources = std::vector<std::pair<std::string, std::unique_ptr<BatchSource>>>;

  // What is wrong with data, classes and method is found here.
  static absl::StatusOr<Sources> OpenSources(EngineContext& context) {
    SSL_RETURN_IF_ERROR(CheckScoresClasses(context));
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> splits, ConfiguredSplits(context.config));
    Sources sources;
    for (const std::string& split : splits) {
      SSL_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source, MakeSplitSource(split, context));
      sources.emplace_back(absl::AsciiStrToLower(split), std::move(source));
    }
    if (sources.size() == 2) {  // TRAIN, TEST
      SSL_ASSIGN_OR_RETURN(sources[1].second,
                           NumberedAsInTraining(std::move(sources[1].second), *sources[0].second, context.config));
    }
    return sources;
  }

  absl::StatusOr<EngineReport> PredictAll(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    SSL_ASSIGN_OR_RETURN(const Sources sources, OpenSources(context));
    SSL_ASSIGN_OR_RETURN(EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
    SSL_RETURN_IF_ERROR(MoveToRunDevice(context, &network));
    std::vector<SplitPredictions> predictions(sources.size());
    absl::Status status = CheckClassesOfCheckpoint(network.checkpoint, absl::AsciiStrToUpper(sources[0].first),
                                                   sources[0].second->ClassNames(), context.file_system);
    for (size_t i = 0; i < sources.size() && status.ok(); ++i) {
      status = Predict(sources[i].first, *sources[i].second, *network.model, task.precision.autocast, context.stop,
                       &predictions[i]);
    }
    std::vector<std::string> earlier;
    if (status.ok()) status = FindEarlierFiles(context, &earlier);
    // What follows is of all ranks: the accuracies, and the files, which are one set.
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, kPrefix, context.communicator));
    std::string table =
        absl::StrFormat("%-6s %-14s %8s %8s%s%s\n", "split", "head", "samples", "top-1",
                        topk_ > 1 ? absl::StrFormat(" %8s", absl::StrCat("top-", topk_)) : "", kIntervalHeading);
    std::vector<NamedArray> arrays;
    ConfigNode results = ConfigNode::Map();
    SSL_RETURN_IF_ERROR(GuardTorch(kPrefix, [&] {
      for (size_t i = 0; i < sources.size(); ++i) {
        SSL_RETURN_IF_ERROR(AddArrays(sources[i].first, *network.model, predictions[i], context.communicator, &results,
                                      &table, &arrays));
      }
      return absl::OkStatus();
    }));
    SSL_ASSIGN_OR_RETURN(
        const std::vector<WrittenArray> written,
        ReplaceArrays(context.run_directory, arrays, earlier, context.file_system, context.communicator));
    context.results.Set(kPrefix, ConfigNode::Map());  // nothing of an earlier one stays
    SetResults(kPrefix, results, {network.weights, network.iteration}, &context.results);
    SSL_ASSIGN_OR_RETURN(const std::string files, FilesTable(context, sources, predictions, written));
    EngineReport report;
    report.summary = absl::StrCat(table, files);
    return report;
  }

  // Collective.
  static absl::StatusOr<std::string> FilesTable(const EngineContext& context, const Sources& sources,
                                                const std::vector<SplitPredictions>& predictions,
                                                const std::vector<WrittenArray>& written) {
    std::vector<SplitRows> rows;
    for (size_t i = 0; i < sources.size(); ++i) {
      SplitRows& split = rows.emplace_back(SplitRows{sources[i].first, sources[i].second->dataset_size(), 0});
      for (const at::Tensor& indices : predictions[i].indices) split.rows += indices.size(0);
    }
    return FormatRankFiles(context.run_directory, written, rows, context.communicator);
  }

  // Those of this rank: predictions beside the targets or accuracies of another extraction would pass for a result.
  static absl::Status FindEarlierFiles(EngineContext& context, std::vector<std::string>* earlier) {
    const int64_t rank = context.communicator.rank();
    if (rank == 0) SSL_RETURN_IF_ERROR(RemoveUnfinishedFiles(context.run_directory, context.file_system));
    SSL_ASSIGN_OR_RETURN(*earlier, EarlierPredictionFiles(context.run_directory, rank, context.communicator.size(),
                                                          context.file_system));
    return absl::OkStatus();
  }

  absl::Status Predict(const std::string& split, BatchSource& source, Model& model, Autocast autocast,
                       const StopToken& stop, SplitPredictions* predictions) const {
    return ForEachFeatureBatch(source, HeadScores(model, autocast), absl::StrCat("predictions for ", split), stop,
                               [&](const FeatureBatch& batch) { return AddBatch(batch, topk_, predictions); });
  }

  // This rank's files of one split, and of all ranks' samples a line of the table for each head. Collective.
  absl::Status AddArrays(const std::string& split, const Model& model, const SplitPredictions& predictions,
                         Communicator& communicator, ConfigNode* results, std::string* table,
                         std::vector<NamedArray>* arrays) const {
    const at::Tensor indices = at::cat(predictions.indices);
    const at::Tensor labels = predictions.labels.empty() ? at::Tensor() : at::cat(predictions.labels);
    SSL_ASSIGN_OR_RETURN(const at::Tensor all_indices, OfAllRanks(indices, communicator));
    const at::Tensor kept = FirstOfEach(all_indices);  // a sample that fills up a rank's share counts once
    at::Tensor all_labels;
    if (labels.defined()) {
      SSL_ASSIGN_OR_RETURN(all_labels, OfAllRanks(labels, communicator));
      all_labels = all_labels.index_select(0, kept);
    }
    const std::vector<std::string> names = HeadNames(meter_, model, predictions.heads.size());
    for (size_t head = 0; head < names.size(); ++head) {
      const at::Tensor classes = at::cat(predictions.heads[head].classes);
      std::vector<std::pair<const char*, at::Tensor>> files = {
          {"predictions", classes}, {"conf_scores", at::cat(predictions.heads[head].probabilities)}, {"inds", indices}};
      if (labels.defined()) files.emplace_back("targets", labels.dim() == 1 ? labels.unsqueeze(1) : labels);
      for (const auto& [kind, array] : files) {
        arrays->push_back({PredictionFile(communicator.rank(), split, names[head], kind), array});
      }
      SSL_ASSIGN_OR_RETURN(const at::Tensor all_classes, OfAllRanks(classes, communicator));
      AddRow(split, names[head], all_classes.index_select(0, kept), all_labels, results, table);
    }
    return absl::OkStatus();
  }

  // rows: [n, ...], of this rank. Returns [N, ...], one rank's after the other's.
  static absl::StatusOr<at::Tensor> OfAllRanks(const at::Tensor& rows, Communicator& communicator) {
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(rows.contiguous()));  // [ranks, n, ...]
    return all.flatten(0, 1);
  }

  void AddRow(const std::string& split, const std::string& name, const at::Tensor& classes, const at::Tensor& labels,
              ConfigNode* results, std::string* table) const {
    const int64_t samples = classes.size(0);
    absl::StrAppendFormat(table, "%-6s %-14s %8d", split, name, samples);
    if (labels.defined() && labels.dim() == 1) {
      const at::Tensor hits = classes.eq(labels.unsqueeze(1)).to(at::kDouble);
      const double top1 = hits.select(1, 0).mean().item<double>();
      absl::StrAppendFormat(table, " %7.2f%%", 100 * top1);
      if (topk_ > 1) absl::StrAppendFormat(table, " %7.2f%%", 100 * hits.sum(1).mean().item<double>());
      absl::StrAppend(table, IntervalColumn(top1, samples));
      const std::string key = absl::StrCat(split, ".", name);
      results->SetPath(key, ConfigNode::FromDouble(top1));
      results->SetPath(absl::StrCat(key, kIntervalEnd), IntervalTree(top1, samples));
    }
    absl::StrAppend(table, "\n");
  }

  const AccuracyMeterView meter_;
  const int64_t topk_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeLabelPredictionsEngine(const ConfigNode& config,
                                                                   const BuildContext& context) {
  AccuracyMeterView meter;
  const ConfigNode& section = config.Section("METERS.accuracy_list_meter");
  SSL_RETURN_IF_ERROR(ReadOptions(section, "config.METERS.accuracy_list_meter", UnknownKeys::kIgnore, &meter));
  if (meter.topk_values.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(section.location().ToString(),
                     ": config.METERS.accuracy_list_meter.topk_values is empty, expected at least one number"));
  }
  return std::make_unique<LabelPredictionsEngine>(std::move(meter));
}

}  // namespace ssl
