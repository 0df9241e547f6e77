// SPDX-License-Identifier: Apache-2.0
//
// Code that runs at fixed points of the training loop.
//
// A host's own hook is one class and one AddHook call. Handlers see the StepContext, never the trainer. Within an
// event, hooks run by stage, then in the order in which they were added, so a check for NaN always precedes what
// changes the model, and a checkpoint follows both. It also follows the reports: a run that is killed and resumes from
// it has told all that happened before. The first error stops training; OnException and OnEnd still run. What a handler
// throws counts as an error.
//
// A checkpoint that a hook asks for in an event is written after all handlers of the event, and holds the state that
// each of them leaves, those of kPersist and those added last included. The last save of a run comes before OnEnd: what
// is noted there is in no checkpoint. What a hook adds to context.meter_reports is seen by those behind it alone:
// metrics.json, early_stop and best_checkpoint are of kPersist and were added before a host's, so that a host's hook
// which reports is of a stage before (StepContext::meter_reports).
//
// OnForward and OnLossAndMeter run in the step's number format (MODEL.AMP_PARAMS): state that they compute with
// convolutions or matrix products goes into AutocastScope(Autocast::kOff), or its type changes.
#ifndef SSL_CORE_HOOK_H_
#define SSL_CORE_HOOK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/cadence.h"
#include "ssl/core/stateful.h"

namespace ssl {

struct StepContext;

// In the order of execution.
enum class HookStage { kTiming, kGuard, kMutate, kObserve, kReport, kPersist };

// Something that a hook does at fixed times.
struct PlannedAction {
  std::string what;            // "saves the state of the run"
  Cadence when;                // of kEpoch: at the end of the train phase
  bool in_test_phase = false;  // instead at the end of the test phase that follows, where one does
  std::string file = {};       // what it leaves in the run directory; "<iteration>" stands for the number of updates
  // In place of times, where these are another hook's to choose: "at each evaluation". `when` and the rest say nothing
  // then.
  std::string moments = {};
};

// What a hook's handlers of OnForward, OnLossAndMeter, OnBackward and OnUpdate do, for a train step that records the
// operations of an update and repeats them without calling handlers (graph_train_step).
enum class WithinUpdate {
  kUnknown,   // the host has to call them in their places: such a step gives way to the standard one
  kObserves,  // read tensors and counters, and may be called when the update is over; or there are no such handlers
  kComputes,  // queue operations on tensors, which are recorded; what they decide on the host is in RecordingKey
};

class Hook : public Stateful {
 public:
  // What it is; one name for each class and way to configure it.
  virtual absl::string_view name() const = 0;
  virtual HookStage stage() const = 0;

  // Unique within a run; the scope of its state in a checkpoint. The name above, unless a run has several hooks of it
  // and gives each its own, before it adds them.
  absl::string_view instance_name() const {
    return instance_name_.empty() ? name() : absl::string_view(instance_name_);
  }
  void set_instance_name(std::string name) { instance_name_ = std::move(name); }

  // What it does at times that are known before the run, for people who ask what a run will do (ssl_main --dry_run),
  // and warn of what never happens. None: it acts whenever its events come.
  virtual std::vector<PlannedAction> Plan() const { return {}; }

  virtual WithinUpdate within_update() const { return WithinUpdate::kUnknown; }

  // Of one that kComputes, before an update: another number when its handlers would queue other operations than in the
  // update before, such as from the iteration on at which they begin. Never the iteration itself.
  virtual int64_t RecordingKey(const StepContext& context) const { return 0; }

  // Once, before the first phase (after a resume, too).
  virtual absl::Status OnStart(StepContext& context) { return absl::OkStatus(); }
  // Before the first step of a train or test phase.
  virtual absl::Status OnPhaseStart(StepContext& context) { return absl::OkStatus(); }
  // Before the forward pass of each batch: context.batch is set, the batch before is gone.
  virtual absl::Status OnBatchStart(StepContext& context) { return absl::OkStatus(); }
  // After the model's forward pass: context.outputs is set.
  virtual absl::Status OnForward(StepContext& context) { return absl::OkStatus(); }
  // After the loss (and meters): context.loss is set.
  virtual absl::Status OnLossAndMeter(StepContext& context) { return absl::OkStatus(); }
  // After backward, before the optimizer: gradients are complete and reduced. Training only.
  virtual absl::Status OnBackward(StepContext& context) { return absl::OkStatus(); }
  // After the optimizer's update. Training only.
  virtual absl::Status OnUpdate(StepContext& context) { return absl::OkStatus(); }
  // At the end of each step: counters are advanced.
  virtual absl::Status OnStep(StepContext& context) { return absl::OkStatus(); }
  virtual absl::Status OnPhaseEnd(StepContext& context) { return absl::OkStatus(); }
  // Once, after the last phase or when training stops early, also after an error.
  virtual absl::Status OnEnd(StepContext& context) { return absl::OkStatus(); }
  // When `error` ends training.
  virtual absl::Status OnException(StepContext& context, const absl::Status& error) { return absl::OkStatus(); }

 private:
  std::string instance_name_;
};

}  // namespace ssl

#endif  // SSL_CORE_HOOK_H_
