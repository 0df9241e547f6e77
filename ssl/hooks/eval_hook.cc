// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/eval_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "ssl/base/clock.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/core/core_options.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/head_outputs.h"
#include "ssl/core/label_check.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/renumbered_source.h"
#include "ssl/core/training_pause.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/loader/evaluation_source.h"
#include "ssl/data/replaced_images.h"
#include "ssl/data/shared_images.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/evaluation_mode.h"
#include "ssl/hooks/register_component.h"
#include "ssl/meters/linear_probe.h"
#include "ssl/meters/weighted_knn.h"

namespace ssl {
namespace {

constexpr char kScope[] = "Evaluation";
// The trunk's output under the name that evaluations know it by.
constexpr char kPooled[] = "res5avg";
constexpr double kPercent = 100.0;
constexpr char kTrain[] = "train";
constexpr char kTest[] = "test";
// What rank 0 tells the others: top-1 and top-5 of the neighbours, then of the linear classifier.
constexpr int64_t kValues = 4;

absl::Status MeasureKnn(const EvalOptions& options, const LabelledFeatures& train, const LabelledFeatures& test,
                        const StopToken* stop, double* percentages) {
  WeightedKnnOptions knn;
  knn.k = std::min(options.knn_k, train.features.size(0));
  knn.temperature = options.knn_temperature;
  knn.stop = stop;
  SSL_ASSIGN_OR_RETURN(const KnnAccuracy accuracy,
                       WeightedKnn(train.features, train.labels, test.features, test.labels, knn));
  percentages[0] = kPercent * accuracy.top1;
  percentages[1] = kPercent * accuracy.top5;
  return absl::OkStatus();
}

absl::Status MeasureLinear(const EvalOptions& options, int64_t seed, const LabelledFeatures& train,
                           const LabelledFeatures& test, const StopToken* stop, double* percentages) {
  LinearProbeOptions probe;
  probe.num_epochs = options.linear_epochs;
  probe.seed = seed;
  const StopToken nobody;
  SSL_ASSIGN_OR_RETURN(const LinearProbeResult result,
                       TrainLinearProbe(train.features, train.labels, test.features, test.labels, probe,
                                        stop != nullptr ? *stop : nobody));
  percentages[0] = kPercent * result.top1;
  percentages[1] = kPercent * result.top5;
  return absl::OkStatus();
}

absl::Status Measure(const EvalOptions& options, int64_t seed, const LabelledFeatures& train,
                     const LabelledFeatures& test, const StopToken* stop, double* percentages) {
  if (options.knn) SSL_RETURN_IF_ERROR(MeasureKnn(options, train, test, stop, percentages));
  if (options.linear) SSL_RETURN_IF_ERROR(MeasureLinear(options, seed, train, test, stop, percentages + 2));
  return absl::OkStatus();
}

// " (left out, as they cannot be read: 5 images of train, 4 images of test)", "" where all can.
std::string LeftOut(const LabelledFeatures& train, const LabelledFeatures& test) {
  std::vector<std::string> splits;
  for (const auto& [data, name] : {std::pair(&train, kTrain), std::pair(&test, kTest)}) {
    const int64_t images = data->unreadable;
    if (images > 0) splits.push_back(absl::StrCat(images, images == 1 ? " image of " : " images of ", name));
  }
  return splits.empty() ? "" : absl::StrCat(" (left out, as they cannot be read: ", absl::StrJoin(splits, ", "), ")");
}

bool IsFinite(const LabelledFeatures& data) { return at::isfinite(data.features).all().item<bool>(); }

absl::Status Stopped() { return absl::CancelledError("evaluation: stopped"); }

bool IsEvery(int64_t frequency, int64_t count) { return frequency > 0 && count % frequency == 0; }

bool IsLastOfPhase(const StepContext& context) {
  return context.state.batch_in_phase + context.batches_per_update > context.batches_per_epoch;
}

absl::Status CheckCount(const ConfigNode& params, const char* key, int64_t count, const BuildContext& context) {
  if (count == -1 || count >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(params, key, context), " is ", count, ", expected at least 2, or -1 for all samples"));
}

absl::StatusOr<std::unique_ptr<BatchSource>> OpenLossData(const EvalOptions& options, const BuildContext& context) {
  const ConfigNode& config = context.config;
  const ConfigNode& views = config.Section(options.loss_transforms == kTest ? "DATA.TEST" : "DATA.TRAIN");
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> source,
                       MakeEvaluationSource(config.Section("DATA.TEST"), views, context, options.num_test_samples));
  SSL_RET_CHECK(context.method != nullptr, "a session makes its hooks when it has a method");
  if (context.method->labels_are_classes()) {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> train, MakeSplitEvaluationSource("TRAIN", -1, context));
    SSL_ASSIGN_OR_RETURN(source, NumberedAsInTraining(std::move(source), *train, config));
  }
  SSL_RETURN_IF_ERROR(CheckLabels(*context.method, "TEST", *source, config));
  return source;
}

absl::StatusOr<LabelledSource> OpenSplit(const std::string& split, int64_t most_samples, const BuildContext& context) {
  LabelledSource source;
  SSL_ASSIGN_OR_RETURN(source.batches, MakeSplitEvaluationSource(split, most_samples, context));
  source.images = dynamic_cast<const ReplacedImages*>(source.batches.get());
  return source;
}

absl::StatusOr<EvalData> OpenData(const EvalOptions& options, const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  EvalData data;
  data.autocast = task.precision.autocast;
  data.seed = task.run.seed;
  data.method = context.method;
  data.features_path = PlaceOf(params, "FEATURES", context);
  if (options.loss) {
    SSL_ASSIGN_OR_RETURN(data.loss, OpenLossData(options, context));
    if (context.method->labels_are_classes()) data.num_classes = LastHeadOutputs(context.config);
  }
  if (!options.classifies()) return data;
  SSL_ASSIGN_OR_RETURN(data.train, OpenSplit("TRAIN", options.num_train_samples, context));
  SSL_ASSIGN_OR_RETURN(data.test, OpenSplit("TEST", options.num_test_samples, context));
  const int64_t shared = CountSharedImages(*data.train.batches, *data.test.batches);
  if (shared > 0 && context.communicator.rank() == 0) {
    SSL_LOG(WARNING) << "evaluation during the training: "
                     << SharedImagesSentence(shared, data.test.batches->dataset_size());
  }
  SSL_ASSIGN_OR_RETURN(data.test.batches,
                       NumberedAsInTraining(std::move(data.test.batches), *data.train.batches, context.config));
  return data;
}

absl::StatusOr<std::unique_ptr<Hook>> MakeEval(const EvalOptions& options, const ConfigNode& params,
                                               const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckCount(params, "NUM_TRAIN_SAMPLES", options.num_train_samples, context));
  SSL_RETURN_IF_ERROR(CheckCount(params, "NUM_TEST_SAMPLES", options.num_test_samples, context));
  if (!options.classifies() && !options.loss) {
    return absl::InvalidArgumentError(absl::StrCat(
        PlaceOf(params, "KNN", context),
        " is false, and so are LINEAR and LOSS, so that nothing is measured; expected one of them to be true"));
  }
  absl::StatusOr<EvalData> data = OpenData(options, params, context);
  if (!data.ok()) return Annotate(data.status(), "the data of the hook eval");
  return std::make_unique<EvalHook>(options, *std::move(data));
}

}  // namespace

void EvalOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("ONLINE_EVALUATION", &online_evaluation,
                Doc("measure features and loss on test samples while the model is trained (ours)").MayChange());
  visitor.Field("EPOCH_FREQUENCY", &epoch_frequency,
                Doc("train epochs between evaluations, 0 or -1 for none but that of the last").AtLeast(-1).MayChange());
  visitor.Field("ITER_FREQUENCY", &iter_frequency,
                Doc("iterations between evaluations, 0 or -1 for none").AtLeast(-1).MayChange());
  visitor.Field("NUM_TRAIN_SAMPLES", &num_train_samples,
                Doc("samples of DATA.TRAIN to classify from, drawn once; -1: all").AtLeast(-1).MayChange());
  visitor.Field("NUM_TEST_SAMPLES", &num_test_samples,
                Doc("samples of DATA.TEST to measure with, drawn once; -1: all").AtLeast(-1).MayChange());
  visitor.Field(
      "FEATURES", &features,
      Doc("stage of the trunk, such as res4, averaged over its pixels; empty: the trunk's output").MayChange());
  visitor.Field("KNN", &knn, Doc("classify by the nearest neighbours").MayChange());
  visitor.Field("KNN_K", &knn_k, Doc("neighbours that vote").AtLeast(1).MayChange());
  visitor.Field("KNN_TEMPERATURE", &knn_temperature, Doc("of their votes").Above(0).MayChange());
  visitor.Field("LINEAR", &linear, Doc("classify by a linear classifier").MayChange());
  visitor.Field("LINEAR_EPOCHS", &linear_epochs, Doc("epochs in which it is trained").AtLeast(1).MayChange());
  visitor.Field("LOSS", &loss,
                Doc("measure the method's loss on those test samples that fill whole batches").MayChange());
  visitor.Field("LOSS_TRANSFORMS", &loss_transforms,
                Doc("whose TRANSFORMS, COLLATE_FUNCTION and BATCHSIZE_PER_REPLICA they are read with for it")
                    .OneOf({kTrain, kTest})
                    .MayChange());
}

EvalHook::EvalHook(const EvalOptions& options, EvalData data) : options_(options), data_(std::move(data)) {}

// Before the first epoch, not at its end: an hour may lie between.
absl::Status EvalHook::OnStart(StepContext& context) {
  const std::vector<std::string> stages = context.model.feature_names();
  if (!options_.features.empty() && std::count(stages.begin(), stages.end(), options_.features) == 0) {
    return absl::NotFoundError(absl::StrCat(data_.features_path, " is '", options_.features,
                                            "', which is no stage of the trunk",
                                            DidYouMean(options_.features, stages)));
  }
  if (!options_.classifies()) return absl::OkStatus();
  absl::Status status = CheckLabelledImages(*data_.train.batches, "config.DATA.TRAIN");
  status.Update(CheckLabelledImages(*data_.test.batches, "config.DATA.TEST"));
  return AgreeOnStatus(status, "reading data to evaluate with", context.communicator);
}

std::vector<PlannedAction> EvalHook::Plan() const {
  std::vector<PlannedAction> plan = {{"evaluates", {Cadence::Unit::kEpoch, options_.epoch_frequency, 1, 0, true}}};
  if (options_.iter_frequency > 0) {
    plan.push_back({"evaluates", {Cadence::Unit::kUpdate, options_.iter_frequency, 1, 0, false}});
  }
  return plan;
}

// Evaluated there, the phase's end would tell the same numbers once more.
absl::Status EvalHook::OnStep(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(TryLoss(context));
  const bool is_due = IsEvery(options_.iter_frequency, context.state.iteration) && !IsLastOfPhase(context);
  return is_due ? EvaluateStep(context) : absl::OkStatus();
}

// Not in OnStart: from here on, model and method are as after the step.
absl::Status EvalHook::OnPhaseStart(StepContext& context) {
  const bool is_owed = owed_at_ == context.state.iteration && context.state.training && !IsLastOfPhase(context);
  return is_owed ? EvaluateStep(context) : absl::OkStatus();
}

absl::Status EvalHook::EvaluateStep(StepContext& context) {
  owed_at_ = context.state.iteration;
  const absl::Status status = Evaluate(context);
  if (absl::IsCancelled(status)) return absl::OkStatus();  // the step is done; the run stops before the next one
  SSL_RETURN_IF_ERROR(status);
  owed_at_ = -1;
  context.meter_reports.insert(context.meter_reports.end(), latest_.begin(), latest_.end());
  MetricReport now{context.state.iteration, context.state.train_phase_index, {}};
  for (const MeterReport& report : latest_) {
    for (const MeterValue& value : report.values) {
      now.values[absl::StrCat(report.scope, "/", report.meter, "_", value.metric)] = value.value;
    }
  }
  // A report of its own: the window of the training metrics stays open.
  return now.values.empty() ? absl::OkStatus() : context.metrics.Write(now, context.communicator);
}

// What a method asks of a batch, such as its number of views, only the method knows, and hours may lie before the first
// evaluation. Not at the start: before the first update, methods get ready.
absl::Status EvalHook::TryLoss(StepContext& context) {
  if (!options_.loss || has_tried_loss_) return absl::OkStatus();
  has_tried_loss_ = true;
  const TrainingPause pause(DeviceOf(context.model), &context.perf_stats);
  return TryValidationLoss(LossRun(), context);
}

bool EvalHook::PhaseIsDue(const StepContext& context) const {
  const int64_t epochs = context.state.train_phase_index + 1;
  return IsEvery(options_.epoch_frequency, epochs) || epochs == context.num_epochs ||
         IsEvery(options_.iter_frequency, context.state.iteration);
}

// Values of an iteration before are not the phase's: what is kept or ended by them would be weights that nobody has
// measured. Those of this iteration are, also for a process that resumes behind OnStep and has to measure them again.
absl::Status EvalHook::OnPhaseEnd(StepContext& context) {
  if (!context.state.training) return absl::OkStatus();
  owed_at_ = -1;  // with other ranks than before, the iteration may have become the phase's last
  if (!PhaseIsDue(context)) return absl::OkStatus();
  if (evaluated_at_ != context.state.iteration) SSL_RETURN_IF_ERROR(Evaluate(context));
  context.meter_reports.insert(context.meter_reports.end(), latest_.begin(), latest_.end());
  return absl::OkStatus();
}

at::Tensor EvalHook::Compute(Model& model, const at::Tensor& images) const {
  const std::vector<std::string> stages = model.feature_names();
  FeatureRequest request;
  request.name = options_.features;
  request.pool = {FeaturePool::Kind::kAdaptiveAverage, {1, 1}, {}, {}};
  if (request.name.empty() && !stages.empty()) {
    request.name = std::count(stages.begin(), stages.end(), kPooled) > 0 ? kPooled : stages.back();
  }
  const bool has_stage = !request.name.empty();
  const at::Tensor there = images.to(DeviceOf(model));
  const at::Tensor features = has_stage ? model.Features(there, {request}).at(0) : model.Forward({there}).at(0);
  return features.flatten(1).to(at::kCPU, at::kFloat);
}

absl::StatusOr<std::optional<LabelledFeatures>> EvalHook::Collect(const LabelledSource& source,
                                                                  const std::string& split,
                                                                  StepContext& context) const {
  const EvaluationMode mode(context.model, context.state.training);
  const AutocastScope precision(data_.autocast);
  return CollectLabelledFeatures(
      source, absl::StrCat("config.DATA.", split),
      [&](const at::Tensor& images) { return Compute(context.model, images); }, context.interruption,
      context.communicator);
}

absl::Status EvalHook::Evaluate(StepContext& context) {
  const TrainingPause pause(DeviceOf(context.model), &context.perf_stats);
  latest_.clear();
  const absl::Time begin = Clock::Real().Now();
  std::vector<std::string> told;
  SSL_ASSIGN_OR_RETURN(const auto buffers, RankZeroBuffers::Take(context.model, context.communicator));
  const WholeParameters whole(context.model);  // ranks have different numbers of batches
  if (options_.classifies()) SSL_RETURN_IF_ERROR(Classify(context, &told));
  if (options_.loss) SSL_RETURN_IF_ERROR(MeasureLoss(context, &told));
  evaluated_at_ = context.state.iteration;
  if (context.communicator.rank() != 0 || told.empty()) return absl::OkStatus();
  SSL_LOG(INFO) << instance_name() << ": iteration " << context.state.iteration << ": " << absl::StrJoin(told, ", ")
                << absl::StrFormat(", in %.1f s", absl::ToDoubleSeconds(Clock::Real().Now() - begin));
  return absl::OkStatus();
}

absl::Status EvalHook::Classify(StepContext& context, std::vector<std::string>* told) {
  const GeneratorScope generator;  // a model of the host's may draw
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const std::optional<LabelledFeatures> train, Collect(data_.train, "TRAIN", context));
  if (!train.has_value()) return Stopped();
  SSL_ASSIGN_OR_RETURN(const std::optional<LabelledFeatures> test, Collect(data_.test, "TEST", context));
  if (!test.has_value()) return Stopped();
  SSL_ASSIGN_OR_RETURN(const std::vector<double> percentages, MeasureForAll(*train, *test, context));
  Report(percentages);
  if (latest_.empty()) return absl::OkStatus();
  if (options_.knn) told->push_back(absl::StrFormat("nearest neighbours %.2f %%", percentages[0]));
  if (options_.linear) told->push_back(absl::StrFormat("linear classifier %.2f %%", percentages[2]));
  const int64_t samples = test->labels.size(0);
  absl::StrAppend(&told->back(), " of ", samples, samples == 1 ? " sample" : " samples", LeftOut(*train, *test));
  return absl::OkStatus();
}

absl::Status EvalHook::MeasureLoss(StepContext& context, std::vector<std::string>* told) {
  SSL_ASSIGN_OR_RETURN(const std::optional<ValidationLoss> loss, MeasureValidationLoss(LossRun(), context));
  if (!loss.has_value()) return Stopped();
  latest_.push_back({absl::StrCat(Prefix(), "loss"), {{"mean", "", loss->mean}}, kScope});
  told->push_back(
      absl::StrFormat("loss %.5f of %d sample%s", loss->mean, loss->samples, loss->samples == 1 ? "" : "s"));
  return absl::OkStatus();
}

ValidationLossRun EvalHook::LossRun() const {
  return {*data_.method, *data_.loss, data_.autocast, data_.seed, data_.num_classes};
}

// One rank classifies and tells the others, so that all decide by the same numbers, and stop together.
absl::StatusOr<std::vector<double>> EvalHook::MeasureForAll(const LabelledFeatures& train, const LabelledFeatures& test,
                                                            StepContext& context) const {
  at::Tensor told = at::full({kValues}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  const auto measure = [&]() -> absl::Status {
    if (IsFinite(train) && IsFinite(test)) {
      return Measure(options_, data_.seed, train, test, context.interruption, told.mutable_data_ptr<double>());
    }
    SSL_LOG(WARNING) << instance_name() << ": features at iteration " << context.state.iteration
                     << " are not finite, so that nothing is measured";
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(measure, "evaluating features", context.communicator));
  SSL_RETURN_IF_ERROR(context.communicator.Broadcast(told, 0));
  const double* values = told.const_data_ptr<double>();
  return std::vector<double>(values, values + kValues);
}

void EvalHook::VisitState(StateVisitor& visitor) { visitor.Int("owed_at", owed_at_); }

std::string EvalHook::Prefix() const { return instance_name() == name() ? "" : absl::StrCat(instance_name(), "_"); }

void EvalHook::Report(const std::vector<double>& percentages) {
  size_t at = 0;
  for (const char* measure : {"knn", "linear"}) {
    const double top1 = percentages[at++];
    const double top5 = percentages[at++];
    if (std::isnan(top1)) continue;
    latest_.push_back({absl::StrCat(Prefix(), measure), {{"top_1", "", top1}, {"top_5", "", top5}}, kScope});
  }
}

absl::Status RegisterEvalHook(Registries* registries) {
  return RegisterHook(registries, {"eval", "measures features and loss on test samples while the model is trained"},
                      &MakeEval);
}

}  // namespace ssl
