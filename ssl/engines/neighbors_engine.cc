// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/neighbors_engine.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/core_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/shared_images.h"
#include "ssl/data/sheets/contact_sheet.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/engines/feature_layers.h"
#include "ssl/engines/original_images.h"
#include "ssl/engines/progress.h"
#include "ssl/engines/results_file.h"
#include "ssl/engines/run_files.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kSection[] = "NEIGHBORS";
constexpr char kPrefix[] = "neighbors";
constexpr char kLayersKey[] = "NEIGHBORS.LAYERS";
constexpr int kGap = 4;  // pixels

// Positions in their data sets; row i belongs to query i.
struct Neighbors {
  at::Tensor queries;    // [Q] int64
  at::Tensor positions;  // [Q, K] int64, the nearest first
  at::Tensor distances;  // [Q, K] float
};

at::Tensor UnitRows(const at::Tensor& rows) { return rows.div(rows.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12)); }

// queries: that many of `test`, evenly spread.
Neighbors FindNeighbors(const FeatureSet& train, const FeatureSet& test, int64_t queries, int64_t topk) {
  const int64_t size = test.indices.size(0);
  const int64_t count = std::min(queries, size);
  const at::Tensor rows = at::arange(count, at::kLong).mul(size).div(count, "floor");
  const at::Tensor similarity =
      at::matmul(UnitRows(test.features[0].index_select(0, rows)), UnitRows(train.features[0]).t());  // [Q, N]
  const auto [nearest, columns] = similarity.topk(std::min(topk, train.indices.size(0)), 1);
  return {test.indices.index_select(0, rows), train.indices.index_select(0, columns.flatten()).view(columns.sizes()),
          nearest.neg().add(1.0).clamp(0.0, 2.0)};
}

// What a sheet shows and names.
struct Originals {
  OriginalImages train;
  OriginalImages test;
};

absl::StatusOr<Originals> OriginalsOf(const BatchSource& train, const BatchSource& test) {
  const Dataset* train_images = DatasetBehind(train);
  const Dataset* test_images = DatasetBehind(test);
  if (train_images != nullptr && test_images != nullptr) {
    return Originals{OriginalImages(*train_images), OriginalImages(*test_images)};
  }
  return absl::UnimplementedError("neighbors: there is no data set behind the batches, whose images could be shown");
}

// Cancelled when a stop was requested: photographs take long to decode.
absl::StatusOr<SheetCell> CellOf(const OriginalImages& images, int64_t index, int side, const StopToken& stop) {
  if (stop.requested()) return absl::CancelledError("drawing neighbours: stopped");
  SSL_ASSIGN_OR_RETURN(const Image image, images.Read(index));
  return SheetCell{FitImage(image, side), {images.ShortName(index)}};
}

absl::StatusOr<Image> DrawNeighbors(const Neighbors& neighbors, const Originals& originals, int side,
                                    const StopToken& stop) {
  std::vector<std::vector<SheetCell>> cells;
  Progress progress("drawing neighbours", neighbors.queries.size(0), Clock::Real());
  for (int64_t query = 0; query < neighbors.queries.size(0); ++query) {
    std::vector<SheetCell>& row = cells.emplace_back();
    SSL_ASSIGN_OR_RETURN(SheetCell cell, CellOf(originals.test, neighbors.queries[query].item<int64_t>(), side, stop));
    row.push_back(std::move(cell));
    for (int64_t k = 0; k < neighbors.positions.size(1); ++k) {
      const int64_t position = neighbors.positions[query][k].item<int64_t>();
      SSL_ASSIGN_OR_RETURN(cell, CellOf(originals.train, position, side, stop));
      cell.caption.push_back(absl::StrFormat("%.4f", neighbors.distances[query][k].item<double>()));
      row.push_back(std::move(cell));
    }
    progress.Update(query + 1);
  }
  return DrawSheet(cells, kGap);
}

ConfigNode TreeOf(const Neighbors& neighbors, const Originals& originals) {
  ConfigNode tree = ConfigNode::List();
  for (int64_t query = 0; query < neighbors.queries.size(0); ++query) {
    ConfigNode list = ConfigNode::List();
    for (int64_t k = 0; k < neighbors.positions.size(1); ++k) {
      ConfigNode neighbor = ConfigNode::Map();
      neighbor.Set("image",
                   ConfigNode::FromString(originals.train.Name(neighbors.positions[query][k].item<int64_t>())));
      neighbor.Set("distance", ConfigNode::FromDouble(neighbors.distances[query][k].item<double>()));
      list.Append(std::move(neighbor));
    }
    ConfigNode entry = ConfigNode::Map();
    entry.Set("query", ConfigNode::FromString(originals.test.Name(neighbors.queries[query].item<int64_t>())));
    entry.Set("neighbors", std::move(list));
    tree.Append(std::move(entry));
  }
  return tree;
}

// What is found with one network.
struct Subject {
  std::string name;  // key in results.json: "untrained", "trained"
  Neighbors neighbors;
};

class NeighborsEngine : public Engine {
 public:
  NeighborsEngine(NeighborsOptions options, std::vector<FeatureRequest> requests)
      : options_(std::move(options)), requests_(std::move(requests)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    if (context.run_directory.empty()) {
      return absl::FailedPreconditionError(
          "engine_name=neighbors writes into the run directory; set config.CHECKPOINT.DIR");
    }
    return WithEvaluationPlan(kPrefix, context, [this](EngineContext& complete) { return FindAll(complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    return CheckWithEvaluationPlan(context, [this](EngineContext& complete) -> absl::Status {
      for (const char* split : {"TRAIN", "TEST"}) {
        SSL_RETURN_IF_ERROR(MakeSplitSource(split, complete).status());
      }
      SSL_ASSIGN_OR_RETURN(const EvaluationModel network, MakeModelToCheck(complete));
      return CheckFeatureNames(*network.model, requests_, kLayersKey, complete.config);
    });
  }

 private:
  absl::StatusOr<EngineReport> FindAll(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> train, MakeSplitSource("TRAIN", context));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> test, MakeSplitSource("TEST", context));
    // Trained weights that are missing come out before the features of any network.
    SSL_ASSIGN_OR_RETURN(EvaluationModel trained, MakeEvaluationModel(context, EvaluationWeights::kTrained));
    SSL_RETURN_IF_ERROR(CheckFeatureNames(*trained.model, requests_, kLayersKey, context.config));
    SSL_RETURN_IF_ERROR(MoveToRunDevice(context, &trained));
    std::vector<Subject> subjects;
    for (const std::string& baseline : options_.baselines) {
      SSL_ASSIGN_OR_RETURN(EvaluationModel initial, MakeEvaluationModel(context, EvaluationWeights::kInitial));
      SSL_RETURN_IF_ERROR(MoveToRunDevice(context, &initial));
      SSL_ASSIGN_OR_RETURN(Neighbors found, FindOf(baseline, initial, *train, *test, context));
      subjects.push_back({baseline, std::move(found)});
    }
    SSL_ASSIGN_OR_RETURN(Neighbors found, FindOf("trained", trained, *train, *test, context));
    subjects.push_back({"trained", std::move(found)});
    SSL_ASSIGN_OR_RETURN(const ConfigNode broken,
                         BrokenImagesOf({{"train", train.get()}, {"test", test.get()}}, context.communicator));
    SSL_ASSIGN_OR_RETURN(const Originals originals, OriginalsOf(*train, *test));
    const int64_t shared = CountSharedImages(*train, *test);
    EngineReport report;
    const auto write = [&] {
      return context.communicator.rank() == 0 ? WriteAll(subjects, originals, broken, context, &report)
                                              : absl::OkStatus();
    };
    SSL_RETURN_IF_ERROR(AgreeOnWork(write, "writing neighbours", context.communicator));
    AddResults(subjects, trained, broken, shared, &context.results);
    const std::string sentence = SharedImagesSentence(shared, test->dataset_size());
    if (context.communicator.rank() == 0 && shared > 0) absl::StrAppend(&report.summary, sentence, "\n");
    return report;
  }

  absl::StatusOr<Neighbors> FindOf(const std::string& name, const EvaluationModel& network, BatchSource& train,
                                   BatchSource& test, EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    const FeatureLayers layers = JoinLayers(ChooseFeatureLayers(*network.model, requests_, task.precision.autocast));
    const auto extract = [&](BatchSource& source, const char* split) {
      return ExtractFeatures(source, layers, absl::StrCat(name, " network, features of ", split), context.stop,
                             context.communicator, LabelNeed::kOptional);
    };
    SSL_ASSIGN_OR_RETURN(const FeatureSet train_features, extract(train, "TRAIN"));
    SSL_ASSIGN_OR_RETURN(const FeatureSet test_features, extract(test, "TEST"));
    Neighbors neighbors;
    SSL_RETURN_IF_ERROR(GuardTorch("comparing features", [&] {
      neighbors = FindNeighbors(train_features, test_features, options_.num_queries, options_.topk);
      return absl::OkStatus();
    }));
    return neighbors;
  }

  absl::Status WriteAll(const std::vector<Subject>& subjects, const Originals& originals, const ConfigNode& broken,
                        EngineContext& context, EngineReport* report) const {
    std::vector<std::string> sheets;  // all drawn before the first is written: a stop leaves what was there
    for (const Subject& subject : subjects) {
      SSL_ASSIGN_OR_RETURN(const Image sheet, DrawNeighbors(subject.neighbors, originals,
                                                            static_cast<int>(options_.image_side), context.stop));
      SSL_ASSIGN_OR_RETURN(sheets.emplace_back(), EncodePng(sheet));
    }
    ConfigNode tree = ConfigNode::Map();
    for (size_t i = 0; i < subjects.size(); ++i) {
      const Subject& subject = subjects[i];
      const std::string path = absl::StrCat(context.run_directory, "/", NeighborsSheet(subject.name));
      SSL_RETURN_IF_ERROR(WriteFileAtomically(context.file_system, path, sheets[i]));
      tree.Set(subject.name, TreeOf(subject.neighbors, originals));
      const int64_t queries = subject.neighbors.positions.size(0);
      const int64_t neighbors = subject.neighbors.positions.size(1);
      absl::StrAppendFormat(
          &report->summary, "%-10s %d %s, %d %s each, distances %.3f to %.3f: %s\n", subject.name, queries,
          queries == 1 ? "query" : "queries", neighbors, neighbors == 1 ? "neighbour" : "neighbours",
          subject.neighbors.distances.min().item<double>(), subject.neighbors.distances.max().item<double>(), path);
    }
    tree.Set(kBrokenImagesKey, broken);
    absl::StrAppend(&report->summary, BrokenImagesLine(broken));
    return WriteResults(absl::StrCat(context.run_directory, "/", kNeighborsFile), tree, context.file_system);
  }

  static void AddResults(const std::vector<Subject>& subjects, const EvaluationModel& trained, const ConfigNode& broken,
                         int64_t shared_images, ConfigNode* results) {
    ConfigNode findings = ConfigNode::Map();
    for (const Subject& subject : subjects) {
      findings.Set("queries", ConfigNode::FromInt(subject.neighbors.queries.size(0)));
      findings.Set(subject.name,
                   ConfigNode::FromDouble(subject.neighbors.distances.select(1, 0).mean().item<double>()));
    }
    findings.Set(kBrokenImagesKey, broken);
    findings.Set(kSharedImagesKey, ConfigNode::FromInt(shared_images));
    SetResults(kPrefix, findings, {trained.weights, trained.iteration}, results);
  }

  const NeighborsOptions options_;
  const std::vector<FeatureRequest> requests_;
};

}  // namespace

void NeighborsOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NUM_QUERIES", &num_queries,
                Doc("images of DATA.TEST whose neighbours are looked for").Between(1, 256));
  visitor.Field("TOPK", &topk, Doc("neighbours of each").Between(1, 64));
  visitor.Field("IMAGE_SIDE", &image_side, Doc("longer side of an image in the sheet").Between(8, 1024).Unit("pixels"));
  visitor.Field("LAYERS", &layers, Doc("trunk stages, as res4:2 for res4 pooled to 2x2; several are joined"));
  visitor.Field("BASELINES", &baselines, Doc("what is compared with the trained network").OneOf({"untrained"}));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeNeighborsEngine(const ConfigNode& config, const BuildContext& context) {
  NeighborsOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (options.layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(section.Find("LAYERS")->location().ToString(), ": config.", kSection,
                                                   ".LAYERS is empty, expected at least one, such as res5avg"));
  }
  SSL_ASSIGN_OR_RETURN(std::vector<FeatureRequest> requests, ParseFeatureRequests(options.layers));
  return std::make_unique<NeighborsEngine>(std::move(options), std::move(requests));
}

}  // namespace ssl
