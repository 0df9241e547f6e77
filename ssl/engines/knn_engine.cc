// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/knn_engine.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/clock.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/data/shared_images.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/accuracy_remarks.h"
#include "ssl/engines/array_set.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/progress.h"
#include "ssl/engines/run_files.h"
#include "ssl/meters/weighted_knn.h"

namespace ssl {
namespace {

constexpr char kSection[] = "NEAREST_NEIGHBOR";
constexpr char kPrefix[] = "knn";

constexpr int64_t kAutoTopk = 20;
constexpr double kAutoSigma = 0.07;

// The section with "auto" resolved.
struct KnnSettings {
  std::vector<int64_t> topk;  // empty: auto, which a small data set may lower
  double sigma = kAutoSigma;
  bool cosine = true;
  std::vector<std::string> chosen;  // for people: the keys that were auto
};

bool IsAuto(const ConfigNode& node) { return node.is_scalar() && node.text() == "auto"; }

std::string PlaceOf(const ConfigNode& node, const char* key) {
  return absl::StrCat(node.location().ToString(), ": config.", kSection, ".", key);
}

absl::Status WrongValue(const ConfigNode& node, const char* key, const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(node, key), " is ", node.Describe(), ", expected ", expected, ", or auto"));
}

absl::StatusOr<std::vector<int64_t>> ReadTopk(const ConfigNode& topk) {
  const std::vector<ConfigNode> items = topk.is_list() ? topk.items() : std::vector<ConfigNode>{topk};
  std::vector<int64_t> values;
  for (const ConfigNode& item : items) values.push_back(item.AsInt().value_or(0));
  if (!values.empty() && *std::min_element(values.begin(), values.end()) >= 1) return values;
  return WrongValue(topk, "TOPK", "a number of at least 1 or a list of such");
}

absl::StatusOr<KnnSettings> ReadSettings(const NearestNeighborOptions& options) {
  KnnSettings settings;
  if (IsAuto(options.topk)) {
    settings.chosen.push_back(absl::StrCat("TOPK ", kAutoTopk));
  } else {
    SSL_ASSIGN_OR_RETURN(settings.topk, ReadTopk(options.topk));
  }
  if (IsAuto(options.sigma)) {
    settings.chosen.push_back(absl::StrCat("SIGMA ", kAutoSigma));
  } else {
    settings.sigma = options.sigma.AsDouble().value_or(0.0);
    if (settings.sigma <= 0.0) return WrongValue(options.sigma, "SIGMA", "a number above 0");
  }
  if (IsAuto(options.l2_norm_feats)) {
    settings.chosen.push_back("L2_NORM_FEATS True (cosine)");
  } else {
    const absl::StatusOr<bool> cosine = options.l2_norm_feats.AsBool();
    if (!cosine.ok()) return WrongValue(options.l2_norm_feats, "L2_NORM_FEATS", "True or False");
    settings.cosine = *cosine;
  }
  return settings;
}

class KnnEngine : public Engine {
 public:
  KnnEngine(NearestNeighborOptions options, KnnSettings settings, EvaluationSubjects subjects)
      : options_(std::move(options)), settings_(std::move(settings)), subjects_(std::move(subjects)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    if (!settings_.chosen.empty()) {
      SSL_LOG(INFO) << "evaluation: nearest neighbours with " << absl::StrJoin(settings_.chosen, ", ")
                    << "; the keys of config." << kSection << " say otherwise";
    }
    if (!subjects_.NeedsImages()) return EvaluateAll(context);
    return WithEvaluationPlan(kPrefix, context, [this](EngineContext& complete) { return EvaluateAll(complete); });
  }

  absl::Status Check(EngineContext& context) const override {
    return CheckWithEvaluationPlan(context, [this](EngineContext& complete) { return subjects_.Check(complete); });
  }

 private:
  // What an evaluation has found so far. It becomes the run's results when all of it is there.
  struct Findings {
    std::string rows;
    AccuracyRemarks remarks;
    ConfigNode results = ConfigNode::Map();
    EvaluatedWeights weights;
    int64_t test_images = 0;
    bool shows_top5 = true;
  };

  absl::StatusOr<EngineReport> EvaluateAll(EngineContext& context) const {
    Findings findings;
    std::vector<int64_t> topk;
    const absl::StatusOr<EvaluatedSubjects> all =
        subjects_.ForEach(context, [&](const SubjectFeatures& subject) -> absl::Status {
          topk = TopkFor(subject.train.labels.size(0));
          findings.test_images = subject.test.labels.size(0);
          findings.shows_top5 = ShowsTop5(subject.train.labels);
          findings.weights = subject.weights;  // the trained network comes last
          for (const int64_t k : topk) {
            SSL_RETURN_IF_ERROR(Evaluate(subject, k, k == topk.front(), context, &findings));
          }
          return absl::OkStatus();
        });
    if (absl::IsCancelled(all.status())) return StoppedReport(kPrefix);
    SSL_RETURN_IF_ERROR(all.status());
    findings.results.Set("k", ConfigNode::FromInt(topk.front()));
    findings.results.Set(kBrokenImagesKey, all->broken_images);
    findings.results.Set(kSharedImagesKey, ConfigNode::FromInt(all->shared_images));
    SetResults(kPrefix, findings.results, findings.weights, &context.results);
    EngineReport report;
    report.summary =
        absl::StrFormat("%-20s %8s%s%s   (%s kNN, k=%s, T=%g, %s, %d test images)\n%s", "features", "top-1",
                        findings.shows_top5 ? "    top-5" : "", kIntervalHeading,
                        settings_.cosine ? "cosine" : "dot product", absl::StrJoin(topk, ", "), settings_.sigma,
                        options_.layers.empty() ? "each layer" : absl::StrJoin(options_.layers, "+"),
                        findings.test_images, findings.rows);
    absl::StrAppend(&report.summary, findings.remarks.Text(all->shared_images), BrokenImagesLine(all->broken_images));
    report.verdict = all->baselines;
    return report;
  }

  std::vector<int64_t> TopkFor(int64_t train_samples) const {
    return settings_.topk.empty() ? std::vector<int64_t>{std::min(kAutoTopk, train_samples)} : settings_.topk;
  }

  absl::Status Evaluate(const SubjectFeatures& subject, int64_t k, bool is_first, EngineContext& context,
                        Findings* findings) const {
    Progress progress(absl::StrCat(subject.title, ", neighbours"), subject.test.labels.size(0), Clock::Real());
    WeightedKnnOptions knn;
    knn.k = k;
    knn.temperature = settings_.sigma;
    knn.normalize = settings_.cosine;
    knn.on_progress = [&progress](int64_t done) { progress.Update(done); };
    knn.stop = &context.stop;
    const absl::StatusOr<KnnAccuracy> measured = WeightedKnn(subject.train.features[0], subject.train.labels,
                                                             subject.test.features[0], subject.test.labels, knn);
    // Before anything of it is written.
    SSL_RETURN_IF_ERROR(AgreeOnStatus(measured.status(), subject.title, context.communicator));
    const KnnAccuracy& accuracy = *measured;
    const std::string key = absl::StrCat(subjects_.ResultKey(subject), is_first ? "" : absl::StrCat("_k", k));
    findings->results.SetPath(key, ConfigNode::FromDouble(accuracy.top1));
    findings->results.SetPath(absl::StrCat(key, kIntervalEnd), IntervalTree(accuracy.top1, findings->test_images));
    if (is_first) findings->remarks.Add(subject, accuracy.top1);
    const std::string top5 = findings->shows_top5 ? absl::StrFormat(" %7.2f%%", 100 * accuracy.top5) : "";
    absl::StrAppendFormat(&findings->rows, "%-20s %7.2f%%%s%s%s\n", subject.title, 100 * accuracy.top1, top5,
                          IntervalColumn(accuracy.top1, findings->test_images), Remark(subject, k));
    const bool saved = options_.save_predictions && is_first && subject.name == "trained";
    return saved ? SavePredictions(subject, accuracy.predictions, context) : absl::OkStatus();
  }

  // What tells a row from others of the same subject.
  std::string Remark(const SubjectFeatures& subject, int64_t k) const {
    std::string remark;
    if (options_.layers.empty()) absl::StrAppend(&remark, "   ", subject.layer);
    if (settings_.topk.size() > 1) absl::StrAppend(&remark, "   k=", k);
    return remark;
  }

  // Rank 0 writes: all ranks have found the same. Collective.
  static absl::Status SavePredictions(const SubjectFeatures& subject, const at::Tensor& predictions,
                                      EngineContext& context) {
    absl::Status tidied;
    std::vector<NamedArray> arrays;
    if (context.communicator.rank() == 0) {
      tidied = RemoveUnfinishedFiles(context.run_directory, context.file_system);
      arrays = {{KnnFile(subject.layer, "predictions"), predictions},
                {KnnFile(subject.layer, "targets"), subject.test.labels},
                {KnnFile(subject.layer, "image_indices"), subject.test.indices}};
    }
    SSL_RETURN_IF_ERROR(AgreeOnStatus(tidied, "removing unfinished files", context.communicator));
    return ReplaceArrays(context.run_directory, arrays, {}, context.file_system, context.communicator).status();
  }

  const NearestNeighborOptions options_;
  const KnnSettings settings_;
  const EvaluationSubjects subjects_;
};

}  // namespace

void NearestNeighborOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SIGMA", &sigma, Doc("temperature of the votes, exp(similarity / SIGMA); auto: 0.07"));
  visitor.Field("TOPK", &topk, Doc("neighbours that vote, or a list to compare; auto: 20"));
  visitor.Field("L2_NORM_FEATS", &l2_norm_feats, Doc("similarity is the cosine, not the dot product; auto: it is"));
  visitor.Section("FEATURES", &features, Doc("extracted files"));
  visitor.Field("LAYERS", &layers,
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2; several are normalised and joined; [] evaluates "
                    "each configured layer by itself (ours)"));
  visitor.Field("BASELINES", &baselines,
                Doc("also evaluate: raw_pixels, untrained; auto: both, unless DATA.TEST.TRANSFORMS or FEATURES.PATH "
                    "is given (ours)"));
  visitor.Field("SAVE_PREDICTIONS", &save_predictions,
                Doc("write kNN_<layer>_output_*.npy to the run directory (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeKnnEngine(const ConfigNode& config, const BuildContext& context) {
  NearestNeighborOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  SSL_ASSIGN_OR_RETURN(KnnSettings settings, ReadSettings(options));
  SubjectOptions subject_options;
  subject_options.layers = options.layers;
  subject_options.baselines = options.baselines;
  subject_options.features_path = options.features.path;
  for (const int64_t k : settings.topk) {
    subject_options.min_train_samples = std::max(subject_options.min_train_samples, k);
  }
  subject_options.min_train_samples_place = PlaceOf(options.topk, "TOPK");
  SSL_ASSIGN_OR_RETURN(EvaluationSubjects subjects,
                       EvaluationSubjects::Create(std::move(subject_options), kSection, config));
  return std::make_unique<KnnEngine>(std::move(options), std::move(settings), std::move(subjects));
}

}  // namespace ssl
