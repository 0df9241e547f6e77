// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/linear_eval_engine.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/data/shared_images.h"
#include "ssl/engines/accuracy_remarks.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/progress.h"
#include "ssl/meters/linear_probe.h"

namespace ssl {
namespace {

constexpr char kSection[] = "LINEAR_EVAL";
constexpr char kPrefix[] = "linear_eval";

LinearProbeOptions ProbeOptions(const LinearEvalOptions& options, int64_t seed) {
  LinearProbeOptions probe;
  probe.learning_rates = options.learning_rates;
  probe.num_epochs = options.num_epochs;
  probe.batch_size = options.batch_size;
  probe.momentum = options.momentum;
  probe.weight_decay = options.weight_decay;
  probe.normalize = options.normalize;
  probe.seed = seed;
  return probe;
}

// The rates of one subject, and the accuracy of the chosen one.
std::string FormatRows(const SubjectFeatures& subject, const LinearProbeResult& result, bool shows_top5) {
  std::string rows;
  for (size_t i = 0; i < result.rates.size(); ++i) {
    const LinearProbeRate& rate = result.rates[i];
    const std::string held_out = rate.diverged ? "diverged" : absl::StrFormat("%.2f%%", 100 * rate.held_out_top1);
    absl::StrAppendFormat(&rows, "%-20s %-14s %8g %9s", i == 0 ? subject.title : "", i == 0 ? subject.layer : "",
                          rate.learning_rate, held_out);
    if (i == result.best) {
      absl::StrAppendFormat(&rows, " %7.2f%%", 100 * result.top1);
      if (shows_top5) absl::StrAppendFormat(&rows, " %7.2f%%", 100 * result.top5);
      absl::StrAppend(&rows, IntervalColumn(result.top1, subject.test.labels.size(0)));
    }
    absl::StrAppend(&rows, "\n");
  }
  return rows;
}

class LinearEvalEngine : public Engine {
 public:
  LinearEvalEngine(LinearEvalOptions options, EvaluationSubjects subjects)
      : options_(std::move(options)), subjects_(std::move(subjects)) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
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
    bool shows_top5 = true;
    ConfigNode results = ConfigNode::Map();
    EvaluatedWeights weights;
    int64_t train_images = 0;
    int64_t test_images = 0;
  };

  absl::StatusOr<EngineReport> EvaluateAll(EngineContext& context) const {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    Findings findings;
    const absl::StatusOr<EvaluatedSubjects> all = subjects_.ForEach(context, [&](const SubjectFeatures& subject) {
      return Evaluate(subject, task.run.seed, context.stop, &findings);
    });
    if (absl::IsCancelled(all.status())) return StoppedReport(kPrefix);
    SSL_RETURN_IF_ERROR(all.status());
    findings.results.Set(kBrokenImagesKey, all->broken_images);
    findings.results.Set(kSharedImagesKey, ConfigNode::FromInt(all->shared_images));
    SetResults(kPrefix, findings.results, findings.weights, &context.results);
    EngineReport report;
    report.summary = absl::StrFormat(
        "%-20s %-14s %8s %9s %8s%s%s   (linear probe, %d epochs, %d training and %d test images)\n%s", "features",
        "layer", "rate", "held out", "top-1", findings.shows_top5 ? "    top-5" : "", kIntervalHeading,
        options_.num_epochs, findings.train_images, findings.test_images, findings.rows);
    absl::StrAppend(&report.summary, findings.remarks.Text(all->shared_images), BrokenImagesLine(all->broken_images));
    report.verdict = all->baselines;
    return report;
  }

  absl::Status Evaluate(const SubjectFeatures& subject, int64_t seed, const StopToken& stop, Findings* findings) const {
    LinearProbeOptions probe = ProbeOptions(options_, seed);
    Progress progress(absl::StrCat(subject.title, ", linear probe, epochs of choosing the rate and of the fit"),
                      2 * probe.num_epochs, Clock::Real());
    probe.on_progress = [&progress](int64_t done) { progress.Update(done); };
    SSL_ASSIGN_OR_RETURN(const LinearProbeResult result,
                         TrainLinearProbe(subject.train.features[0], subject.train.labels, subject.test.features[0],
                                          subject.test.labels, probe, stop));
    findings->shows_top5 = ShowsTop5(subject.train.labels);
    findings->remarks.Add(subject, result.top1);
    absl::StrAppend(&findings->rows, FormatRows(subject, result, findings->shows_top5));
    findings->weights = subject.weights;  // the trained network comes last
    findings->train_images = subject.train.labels.size(0);
    findings->test_images = subject.test.labels.size(0);
    const std::string key = subjects_.ResultKey(subject);
    ConfigNode& results = findings->results;
    results.SetPath(key, ConfigNode::FromDouble(result.top1));
    results.SetPath(absl::StrCat(key, kIntervalEnd), IntervalTree(result.top1, findings->test_images));
    results.SetPath(absl::StrCat(key, "_top5"), ConfigNode::FromDouble(result.top5));
    results.SetPath(absl::StrCat(key, "_learning_rate"),
                    ConfigNode::FromDouble(result.rates[result.best].learning_rate));
    return absl::OkStatus();
  }

  const LinearEvalOptions options_;
  const EvaluationSubjects subjects_;
};

}  // namespace

void LinearEvalOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("LAYERS", &layers,
                Doc("trunk stages, as res4:2 for res4 pooled to 2x2; several are normalised and joined; [] evaluates "
                    "each configured layer by itself (ours)"));
  visitor.Field("BASELINES", &baselines,
                Doc("also evaluate: raw_pixels, untrained; auto: both, unless DATA.TEST.TRANSFORMS or FEATURES.PATH "
                    "is given (ours)"));
  visitor.Section("FEATURES", &features, Doc("extracted files"));
  visitor.Field("LEARNING_RATES", &learning_rates,
                Doc("trained side by side; the best on held out training samples counts (ours)").Above(0.0));
  visitor.Field("NUM_EPOCHS", &num_epochs, Doc("epochs of the linear classifier (ours)").AtLeast(1));
  visitor.Field("BATCH_SIZE", &batch_size, Doc("samples of an update (ours)").AtLeast(1));
  visitor.Field("MOMENTUM", &momentum, Doc("of SGD, Nesterov's (ours)").Between(0.0, 1.0));
  visitor.Field("WEIGHT_DECAY", &weight_decay, Doc("of weights, not of biases (ours)").AtLeast(0.0));
  visitor.Field("NORMALIZE", &normalize, Doc("features to mean 0 and variance 1 over the training set (ours)"));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeLinearEvalEngine(const ConfigNode& config, const BuildContext& context) {
  LinearEvalOptions options;
  const ConfigNode& section = config.Section(kSection);
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (options.learning_rates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(section.location().ToString(), ": config.", kSection,
                                                   ".LEARNING_RATES is empty, expected at least one rate"));
  }
  SubjectOptions subject_options;
  subject_options.layers = options.layers;
  subject_options.baselines = options.baselines;
  subject_options.features_path = options.features.path;
  SSL_ASSIGN_OR_RETURN(EvaluationSubjects subjects,
                       EvaluationSubjects::Create(std::move(subject_options), kSection, config));
  return std::make_unique<LinearEvalEngine>(std::move(options), std::move(subjects));
}

}  // namespace ssl
