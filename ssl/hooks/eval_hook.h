// SPDX-License-Identifier: Apache-2.0
//
// What the features are worth while they are being trained: HOOKS.EVAL measures, after epochs or iterations, how well a
// bounded number of test samples is classified from the trunk's features of training samples, by their nearest
// neighbours (ssl/meters/weighted_knn.h) and by a linear classifier (ssl/meters/linear_probe.h):
//
//   Evaluation/knn_top_1, Evaluation/knn_top_5, Evaluation/linear_top_1, Evaluation/linear_top_5   in percent
//
// and, with LOSS, what the method's loss is on test samples (validation_loss.h): Evaluation/loss_mean. (Of an instance
// with a name of its own Evaluation/<name>_knn_top_1 ...) Those of an iteration are a report of their own;
// those of the iteration at which a train phase ends stand in its meter reports, so that metrics.json has them: other
// phases have none. early_stop and best_checkpoint see all of them, each once.
//
// The loss is that of DATA.TEST's samples in views and batches as DATA.TRAIN's, because the views of DATA.TEST are
// often those of a classification; with LOSS_TRANSFORMS test they are its own, as in test phases (config.TEST_MODEL),
// whose Testing/loss_mean comes once an epoch. It needs no labels unless the method does. Its mean is that of full
// batches (validation_loss.h); the log says of how many samples. What the method remembers is that of the training in
// progress: SwAV's queue has the scores that the prototypes gave before the last update. The first update of a process
// tries one batch, so that data which the method cannot use end the run there.
//
// It leaves training as it is: the model is in evaluation mode, in which no statistic moves, without gradients, and the
// data come from loaders of the hook's own. The samples are the same each time; those that are classified are read with
// DATA.TEST's transforms. Those whose image cannot be read are not classified, nor from; the log says of how many. The
// loss is that of whole batches, as in training and in test phases: with what stands in for such an image.
// Features that are not finite give a warning and no value. Ranks share the samples, and all measure rank 0's model:
// its running statistics, which are those of the checkpoint's model, stand in for their own meanwhile. Rank 0
// classifies. Stage kObserve, ahead of early_stop. A stop of the run ends an evaluation after a batch, without values:
// that of a phase's end is made anew when the run goes on (ssl/core/trainer.h), and that of an iteration within a phase
// by the process that goes on, before its first step. State: `owed_at`, the iteration of such a one, else -1. An
// evaluation that a resumed run repeats has the same values.
#ifndef SSL_HOOKS_EVAL_HOOK_H_
#define SSL_HOOKS_EVAL_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/autocast.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/meter.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/labelled_features.h"
#include "ssl/hooks/validation_loss.h"

namespace ssl {

// The section HOOKS.EVAL (ours).
struct EvalOptions : public ComponentOptions {
  bool online_evaluation = false;
  int64_t epoch_frequency = 1;
  int64_t iter_frequency = -1;
  int64_t num_train_samples = 5000;
  int64_t num_test_samples = 1000;
  std::string features;  // "": the trunk's output
  bool knn = true;
  int64_t knn_k = 20;
  double knn_temperature = 0.07;
  bool linear = true;
  int64_t linear_epochs = 20;
  bool loss = false;
  std::string loss_transforms = "train";

  bool classifies() const { return knn || linear; }

  absl::string_view section() const override { return "HOOKS.EVAL"; }
  bool enabled() const override { return online_evaluation; }
  void VisitFields(FieldVisitor& visitor) override;
};

// What the hook reads, apart from its options.
struct EvalData {
  LabelledSource train;  // both without batches when nothing is classified
  LabelledSource test;
  Autocast autocast = Autocast::kOff;  // of the forward pass
  int64_t seed = 0;
  int64_t num_classes = 0;                                   // that labels may name; 0 when it is not known
  std::unique_ptr<BatchSource> loss = nullptr;               // null without LOSS
  Method* method = nullptr;                                  // whose loss it is; outlives the hook
  std::string features_path = "config.HOOKS.EVAL.FEATURES";  // where that key stands, for messages
};

class EvalHook : public Hook {
 public:
  EvalHook(const EvalOptions& options, EvalData data);

  absl::string_view name() const override { return "eval"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // InvalidArgument for data that cannot be evaluated, NotFound for a stage that the trunk does not have.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

 private:
  bool PhaseIsDue(const StepContext& context) const;
  // Within a phase; what a stop of the run interrupts is owed.
  absl::Status EvaluateStep(StepContext& context);
  // Cancelled, on all ranks, when the run is to stop.
  absl::Status Evaluate(StepContext& context);
  absl::Status TryLoss(StepContext& context);
  // Both add to `latest_`, and what they have measured to `told`, for people.
  absl::Status Classify(StepContext& context, std::vector<std::string>* told);
  absl::Status MeasureLoss(StepContext& context, std::vector<std::string>* told);
  std::string Prefix() const;  // of the names of what it measures
  at::Tensor Compute(Model& model, const at::Tensor& images) const;
  absl::StatusOr<std::optional<LabelledFeatures>> Collect(const LabelledSource& source, const std::string& split,
                                                          StepContext& context) const;
  absl::StatusOr<std::vector<double>> MeasureForAll(const LabelledFeatures& train, const LabelledFeatures& test,
                                                    StepContext& context) const;
  void Report(const std::vector<double>& percentages);

  ValidationLossRun LossRun() const;

  const EvalOptions options_;
  EvalData data_;
  bool has_tried_loss_ = false;
  std::vector<MeterReport> latest_;
  int64_t evaluated_at_ = -1;  // iteration of `latest_`
  int64_t owed_at_ = -1;       // iteration within a phase whose evaluation was interrupted; -1: none
};

absl::Status RegisterEvalHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_EVAL_HOOK_H_
