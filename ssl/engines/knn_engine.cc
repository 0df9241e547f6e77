// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/knn_engine.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/clock.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/core_options.h"
#include "ssl/core/model.h"
#include "ssl/data/data_source_builder.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/engines/progress.h"
#include "ssl/engines/weighted_knn.h"

namespace ssl {
namespace {

constexpr char kSection[] = "NEAREST_NEIGHBOR";

// One row of the table: a network, or none for the pixels.
struct Subject {
  const char* name;   // key in results.json
  const char* title;  // in the table
  bool has_model;
  bool from_checkpoint;
};

constexpr Subject kSubjects[] = {
    {"raw_pixels", "raw pixels", false, false},
    {"untrained", "untrained network", true, false},
    {"trained", "trained network", true, true},
};

// The node at `path`, in place, so that components can tell where it stands; or an empty map.
const ConfigNode& Node(const ConfigNode& config, absl::string_view path) {
  static const auto* const empty = new ConfigNode(ConfigNode::Map());
  const ConfigNode* node = config.FindPath(path);
  return node != nullptr ? *node : *empty;
}

// Pixels as they are in the files, without normalisation.
ConfigNode RawPixelTransforms(const ConfigNode& config) {
  ConfigNode to_tensor = ConfigNode::Map();
  to_tensor.Set("name", ConfigNode::FromString("ToTensor"));
  ConfigNode transforms = ConfigNode::List();
  transforms.Append(to_tensor);
  ConfigNode split = Node(config, "DATA.TEST");
  split.Set("TRANSFORMS", transforms);
  return split;
}

class KnnEngine : public Engine {
 public:
  explicit KnnEngine(NearestNeighborOptions options, std::vector<FeatureRequest> requests)
      : options_(std::move(options)), requests_(std::move(requests)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    EngineReport report;
    report.summary = absl::StrFormat("%-20s %8s %8s   (cosine kNN, k=%d, T=%g, %s)\n", "features", "top-1", "top-5",
                                     options_.topk, options_.sigma, absl::StrJoin(options_.layers, "+"));
    context.results.SetPath("knn.k", ConfigNode::FromInt(options_.topk));
    for (const Subject& subject : kSubjects) {
      if (!IsWanted(subject)) continue;
      const absl::StatusOr<KnnAccuracy> accuracy = Evaluate(subject, task, context);
      if (accuracy.status().code() == absl::StatusCode::kCancelled) {
        report.stopped = true;
        return report;
      }
      SSL_RETURN_IF_ERROR(accuracy.status());
      context.results.SetPath(absl::StrCat("knn.", subject.name), ConfigNode::FromDouble(accuracy->top1));
      absl::StrAppendFormat(&report.summary, "%-20s %7.2f%% %7.2f%%\n", subject.title, 100 * accuracy->top1,
                            100 * accuracy->top5);
    }
    return report;
  }

 private:
  bool IsWanted(const Subject& subject) const {
    if (subject.from_checkpoint) return true;
    const std::vector<std::string>& wanted = options_.baselines;
    return std::find(wanted.begin(), wanted.end(), subject.name) != wanted.end();
  }

  absl::StatusOr<KnnAccuracy> Evaluate(const Subject& subject, const TaskOptions& task, EngineContext& context) const {
    const BuildContext build{context.config, context.registries,    context.communicator,
                             task.run.seed,  context.run_directory, 0};
    std::unique_ptr<Model> model;
    if (subject.has_model) {
      SSL_RETURN_IF_ERROR(GuardTorch("building the model", [&]() -> absl::Status {
        SSL_ASSIGN_OR_RETURN(model,
                             context.registries.models.Make(task.model_name, Node(context.config, "MODEL"), build));
        return absl::OkStatus();
      }));
    }
    if (subject.from_checkpoint) SSL_RETURN_IF_ERROR(Restore(*model, context));
    SSL_ASSIGN_OR_RETURN(const FeatureSet bank, Features(subject, "TRAIN", model.get(), task, context, build));
    SSL_ASSIGN_OR_RETURN(const FeatureSet queries, Features(subject, "TEST", model.get(), task, context, build));
    return Classify(subject, bank, queries);
  }

  static absl::Status Restore(Model& model, EngineContext& context) {
    const absl::StatusOr<int64_t> iteration = RestoreModel(absl::StrCat(context.run_directory, "/checkpoints"),
                                                           context.file_system, context.communicator, model);
    SSL_RETURN_IF_ERROR(iteration.status());
    SSL_LOG(INFO) << "evaluating the checkpoint of iteration " << *iteration;
    return absl::OkStatus();
  }

  absl::StatusOr<FeatureSet> Features(const Subject& subject, const std::string& split, Model* model,
                                      const TaskOptions& task, EngineContext& context,
                                      const BuildContext& build) const {
    const ConfigNode transforms =
        model != nullptr ? Node(context.config, "DATA.TEST") : RawPixelTransforms(context.config);
    const ConfigNode& data = Node(context.config, absl::StrCat("DATA.", split));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source, MakeEvaluationSource(data, transforms, build));
    FeatureExtractionOptions options;
    options.requests = requests_;
    options.use_autocast = task.use_autocast;
    options.what = absl::StrCat(subject.title, ", features of ", split);
    return ExtractFeatures(model, *source, options, context.stop);
  }

  absl::StatusOr<KnnAccuracy> Classify(const Subject& subject, const FeatureSet& bank,
                                       const FeatureSet& queries) const {
    Progress progress(absl::StrCat(subject.title, ", neighbours"), queries.features.size(0), Clock::Real());
    WeightedKnnOptions knn;
    knn.k = options_.topk;
    knn.temperature = options_.sigma;
    knn.normalize = options_.l2_norm_feats;
    knn.on_progress = [&progress](int64_t done) { progress.Update(done); };
    absl::StatusOr<KnnAccuracy> accuracy;
    SSL_RETURN_IF_ERROR(GuardTorch("nearest neighbours", [&] {
      accuracy = WeightedKnn(bank.features, bank.labels, queries.features, queries.labels, knn);
      return accuracy.status();
    }));
    return accuracy;
  }

  const NearestNeighborOptions options_;
  const std::vector<FeatureRequest> requests_;
};

absl::Status CheckBaselines(const std::vector<std::string>& baselines, const std::string& place) {
  std::vector<std::string> known;
  for (const Subject& subject : kSubjects) {
    if (!subject.from_checkpoint) known.push_back(subject.name);
  }
  for (const std::string& name : baselines) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(place, ": config.", kSection, ".BASELINES has '", name,
                                                   "', expected ", absl::StrJoin(known, ", "),
                                                   DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

}  // namespace

void NearestNeighborOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SIGMA", &sigma, Doc("temperature of the votes, exp(similarity / SIGMA)").Above(0.0));
  visitor.Field("TOPK", &topk, Doc("neighbours that vote").AtLeast(1));
  visitor.Field("L2_NORM_FEATS", &l2_norm_feats, Doc("similarity is the cosine, not the dot product"));
  visitor.Field("LAYERS", &layers,
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2; several are normalised and joined (ours)"));
  visitor.Field("BASELINES", &baselines, Doc("also evaluate: raw_pixels, untrained (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeKnnEngine(const ConfigNode& config, const BuildContext& context) {
  NearestNeighborOptions options;
  const ConfigNode& section = Node(config, kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckBaselines(options.baselines, section.location().ToString()));
  SSL_ASSIGN_OR_RETURN(std::vector<FeatureRequest> requests, ParseFeatureRequests(options.layers));
  return std::make_unique<KnnEngine>(std::move(options), std::move(requests));
}

}  // namespace ssl
