// SPDX-License-Identifier: Apache-2.0
//
// Ends the run when a metric of its phases no longer gets better. Stage kPersist, after all that adds reports of its
// own, a host's hooks of the stages before among them.
//
// At the end of each phase that has the metric (a name that starts with "Testing/" belongs to test phases, "Training/"
// to train phases; a run without such phases is refused), and at each evaluation of the hook `eval` ("Evaluation/") or
// report of a hook of the host's ("Host/"), within phases as well, a value that is better than the best so far by more
// than min_delta starts the count anew; `patience` others in a row end the run: its state is saved, OnEnd comes, and it
// is finished (ssl/core/trainer.h). The log says why, also when a finished run starts again. Such a start trains
// nothing, however many epochs it has; with a larger patience it goes on. NaN and infinity are never
// better. A phase's end that is told of twice, because a hook behind this one gave way to a stop, counts once. State:
// `best`, `has_best`, `phases_without`; `counted/end`, `counted/metric` and `counted/mode`, of what that was: another
// metric or mode starts anew.
#ifndef SSL_HOOKS_EARLY_STOP_HOOK_H_
#define SSL_HOOKS_EARLY_STOP_HOOK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section HOOKS.EARLY_STOP (ours).
struct EarlyStopOptions : public ComponentOptions {
  std::string metric;  // "": the hook is off
  std::string mode = "min";
  int64_t patience = 10;
  double min_delta = 0.0;

  absl::string_view section() const override { return "HOOKS.EARLY_STOP"; }
  bool enabled() const override { return !metric.empty(); }
  void VisitFields(FieldVisitor& visitor) override;
};

// Where the keys stand, for messages: in the section, or in an entry of the list of hooks.
struct EarlyStopPaths {
  std::string metric = "config.HOOKS.EARLY_STOP.METRIC";
  std::string patience = "config.HOOKS.EARLY_STOP.PATIENCE";
};

// What a count is of. A part of the state that a checkpoint of an older version lacks.
struct CountedValues : public Stateful {
  void VisitState(StateVisitor& visitor) override;

  std::string metric;
  std::string mode;
  int64_t end = -1;  // the last phase's end that was counted; below 0: none
};

class EarlyStopHook : public Hook {
 public:
  explicit EarlyStopHook(const EarlyStopOptions& options, EarlyStopPaths paths = {});

  absl::string_view name() const override { return "early_stop"; }
  HookStage stage() const override { return HookStage::kPersist; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  // A value that a hook measures between phase ends ("Evaluation/", "Host/") counts as one of a phase.
  absl::Status OnPhaseStart(StepContext& context) override { return OnStep(context); }
  absl::Status OnStep(StepContext& context) override;
  // NotFound, with the nearest name, when a phase of the metric's kind has no such value.
  absl::Status OnPhaseEnd(StepContext& context) override;
  // Warns of a metric that no evaluation has measured.
  absl::Status OnEnd(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

 private:
  bool IsBetter(double value) const;
  void Count(double value, StepContext& context);
  void EndIfDue(StepContext& context) const;
  void StartAnewForAnother();

  const EarlyStopOptions options_;
  const EarlyStopPaths paths_;
  CountedValues counted_;
  double best_ = 0.0;
  int64_t has_best_ = 0;
  int64_t phases_without_ = 0;
};

absl::Status RegisterEarlyStopHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_EARLY_STOP_HOOK_H_
