// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/knn_engine.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/progress.h"
#include "ssl/engines/weighted_knn.h"

namespace ssl {
namespace {

constexpr char kSection[] = "NEAREST_NEIGHBOR";

// TOPK: a number or a list of numbers.
absl::StatusOr<std::vector<int64_t>> ReadTopk(const ConfigNode& topk) {
  const std::vector<ConfigNode> items = topk.is_list() ? topk.items() : std::vector<ConfigNode>{topk};
  std::vector<int64_t> values;
  for (const ConfigNode& item : items) values.push_back(item.AsInt().value_or(0));
  if (!values.empty() && *std::min_element(values.begin(), values.end()) >= 1) return values;
  return absl::InvalidArgumentError(absl::StrCat(topk.location().ToString(), ": config.", kSection, ".TOPK is ",
                                                 topk.Describe(),
                                                 ", expected a number of at least 1 or a list of such"));
}

class KnnEngine : public Engine {
 public:
  KnnEngine(NearestNeighborOptions options, std::vector<int64_t> topk, EvaluationSubjects subjects)
      : options_(std::move(options)), topk_(std::move(topk)), subjects_(std::move(subjects)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    EngineReport report;
    report.summary =
        absl::StrFormat("%-20s %8s %8s   (%s kNN, k=%s, T=%g, %s)\n", "features", "top-1", "top-5",
                        options_.l2_norm_feats ? "cosine" : "dot product", absl::StrJoin(topk_, ", "), options_.sigma,
                        options_.layers.empty() ? "each layer" : absl::StrJoin(options_.layers, "+"));
    context.results.SetPath("knn.k", ConfigNode::FromInt(topk_.front()));
    const absl::Status status = subjects_.ForEach(context, [&](const SubjectFeatures& subject) -> absl::Status {
      for (const int64_t k : topk_) {
        SSL_RETURN_IF_ERROR(Evaluate(subject, k, context, &report.summary));
      }
      return absl::OkStatus();
    });
    report.stopped = absl::IsCancelled(status);
    if (!status.ok() && !report.stopped) return status;
    return report;
  }

 private:
  absl::Status Evaluate(const SubjectFeatures& subject, int64_t k, EngineContext& context, std::string* table) const {
    Progress progress(absl::StrCat(subject.title, ", neighbours"), subject.test.labels.size(0), Clock::Real());
    WeightedKnnOptions knn;
    knn.k = k;
    knn.temperature = options_.sigma;
    knn.normalize = options_.l2_norm_feats;
    knn.on_progress = [&progress](int64_t done) { progress.Update(done); };
    SSL_ASSIGN_OR_RETURN(const KnnAccuracy accuracy, WeightedKnn(subject.train.features[0], subject.train.labels,
                                                                 subject.test.features[0], subject.test.labels, knn));
    const bool first = k == topk_.front();
    const std::string key = subjects_.ResultKey("knn", subject);
    context.results.SetPath(first ? key : absl::StrCat(key, "_k", k), ConfigNode::FromDouble(accuracy.top1));
    absl::StrAppendFormat(table, "%-20s %7.2f%% %7.2f%%%s\n", subject.title, 100 * accuracy.top1, 100 * accuracy.top5,
                          Remark(subject, k));
    const bool saved = options_.save_predictions && first && subject.name == "trained";
    return saved ? SavePredictions(subject, accuracy.predictions, context) : absl::OkStatus();
  }

  // What tells a row from others of the same subject.
  std::string Remark(const SubjectFeatures& subject, int64_t k) const {
    std::string remark;
    if (options_.layers.empty()) absl::StrAppend(&remark, "   ", subject.layer);
    if (topk_.size() > 1) absl::StrAppend(&remark, "   k=", k);
    return remark;
  }

  static absl::Status SavePredictions(const SubjectFeatures& subject, const at::Tensor& predictions,
                                      EngineContext& context) {
    const std::vector<std::pair<const char*, at::Tensor>> arrays = {
        {"predictions", predictions}, {"targets", subject.test.labels}, {"image_indices", subject.test.indices}};
    for (const auto& [kind, array] : arrays) {
      const std::string file = absl::StrCat("kNN_", subject.layer, "_output_", kind, ".npy");
      SSL_RETURN_IF_ERROR(WriteArray(context.run_directory, file, array, context.file_system).status());
    }
    return absl::OkStatus();
  }

  const NearestNeighborOptions options_;
  const std::vector<int64_t> topk_;
  const EvaluationSubjects subjects_;
};

}  // namespace

void NearestNeighborOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SIGMA", &sigma, Doc("temperature of the votes, exp(similarity / SIGMA)").Above(0.0));
  visitor.Field("TOPK", &topk, Doc("neighbours that vote, or a list to compare"));
  visitor.Field("L2_NORM_FEATS", &l2_norm_feats, Doc("similarity is the cosine, not the dot product"));
  visitor.Section("FEATURES", &features, Doc("extracted files"));
  visitor.Field("LAYERS", &layers,
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2; several are normalised and joined; [] evaluates "
                    "each configured layer by itself (ours)"));
  visitor.Field("BASELINES", &baselines, Doc("also evaluate: raw_pixels, untrained (ours)"));
  visitor.Field("SAVE_PREDICTIONS", &save_predictions,
                Doc("write kNN_<layer>_output_*.npy to the run directory (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeKnnEngine(const ConfigNode& config, const BuildContext& context) {
  NearestNeighborOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  SSL_ASSIGN_OR_RETURN(std::vector<int64_t> topk, ReadTopk(options.topk));
  SSL_ASSIGN_OR_RETURN(
      EvaluationSubjects subjects,
      EvaluationSubjects::Create({options.layers, options.baselines, options.features.path}, kSection, config));
  return std::make_unique<KnnEngine>(std::move(options), std::move(topk), std::move(subjects));
}

}  // namespace ssl
