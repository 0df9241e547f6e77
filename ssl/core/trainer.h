// SPDX-License-Identifier: Apache-2.0
//
// The training loop: phases, steps, events, counters. The session drives it: Prepare, restore, Start, Step..., Finish.
#ifndef SSL_CORE_TRAINER_H_
#define SSL_CORE_TRAINER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/metrics.h"
#include "ssl/core/phase_loss.h"
#include "ssl/core/run_preview.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/step_context.h"
#include "ssl/core/timed_communicator.h"
#include "ssl/core/training_pause.h"

namespace ssl {

// Two may ask a run to stop: who runs it (`stop`, which may be shared by a process), and its own hooks (context.stop, a
// token of this run alone). A hook's kStopUser is a decision about the training: it ends early, and is finished. Any
// other reason of either interrupts it. A snapshot (StopToken::RequestSnapshot of `stop`) is saved between two steps,
// and the run goes on. Ranks agree on all three by one operation before each step and phase.
//
// OnPhaseEnd may give way to a stop that is asked for meanwhile: when a handler returns Cancelled, on all ranks, the
// run stops as before the end of that phase, which every hook is told again when the run goes on. Cancelled without a
// stop is an error like any other.
//
// One thread uses a trainer. References outlive it. Its calls may throw LibTorch exceptions, except Finish; after an
// error or an exception only Finish may follow.
class Trainer : public Stateful, private CheckpointSaver {
 public:
  // The task's parts use the same communicator: what a step waits in it is no part's own time.
  Trainer(std::unique_ptr<SelfSupervisionTask> task, TimedCommunicator& communicator, StopToken& stop);

  SelfSupervisionTask& task() { return *task_; }
  MetricStore& metrics() { return metrics_; }
  // The hook whose error is the run's first; none when that came from elsewhere.
  const HookFailure& hook_failure() const { return failed_ ? hook_failure_ : hooks_.failure(); }
  // What the ranks agreed to stop for; kStopNone while they go on, and when the run has ended early.
  int stop_reason() const { return stop_reason_; }
  // A hook has decided that nothing is left to do: the run is finished, whatever epochs it had before it.
  bool ended_early() const { return ended_early_; }
  // What the hook said that asked for it (StepContext::RequestStop); for a decision of another rank's, that it was one.
  const std::string& end_reason() const { return end_reason_; }

  // Prepares the method and adds its hooks. First of all, so that a restore finds all state in place.
  absl::Status Prepare();

  // Between Prepare and Start.
  absl::Status AddHook(std::unique_ptr<Hook> hook) { return hooks_.Add(std::move(hook)); }
  void SetCheckpoints(CheckpointSaver* checkpoints);

  // Of the hooks that it has now, in the order in which they are called.
  std::vector<std::string> HookNames() const;

  // What a run from the beginning would do.
  RunPreview Preview() const;

  // Tells the hooks that training starts; goes on where a restored state stands.
  absl::Status Start();

  // Runs one step, with the phase changes around it; false when there is none left, a stop was requested or a hook has
  // ended the run.
  absl::StatusOr<bool> Step();

  // Ends the run: saves what is new unless it failed, tells the hooks, flushes the metrics; each of these whatever
  // became of the others. `status` is why it ends: OK, or the error, which it returns then.
  absl::Status Finish(const absl::Status& status);

  // The task's state, the loss of the phase, and hooks/.
  void VisitState(StateVisitor& visitor) override;

 private:
  class Batches;

  // A save that a hook has asked for.
  struct AskedSave {
    std::string name;  // "" for none
    bool replaceable = false;
    std::string hook;
  };

  // Runs the handlers of an event, then makes the saves that they have asked for.
  absl::Status Tell(const HookEvent& event);
  absl::Status KeepReports();
  absl::Status MakeSave(const AskedSave& asked);
  // An error is that of the hook whose save it was: of this one, or of the one before, when that has failed since.
  absl::Status MakeAskedSave(const AskedSave& asked, const HookEvent& event);

  // What hooks see as context.checkpoints. FailedPrecondition within a step and after an error: such a state is half
  // of one step and half of another.
  absl::Status CheckMaySave() const;
  absl::Status Save() override;
  absl::Status Poll() override;
  absl::Status Wait() override;
  absl::Status SaveAs(const std::string& name, bool replaceable) override;
  absl::StatusOr<int64_t> Named(const std::string& name) override;
  absl::StatusOr<bool> NameSaved(const std::string& name, int64_t iteration) override;
  absl::Status SaveAtEnd();
  absl::Status SaveSnapshot();

  // Agrees with the other ranks; true once the run has to stop or end. Saves what a snapshot was asked for.
  absl::StatusOr<bool> EndIsRequested();
  void NoteEarlyEnd();
  // Makes sure that a phase is running and fetches its next batch; false when no phase is left.
  absl::StatusOr<bool> NextBatch();
  absl::StatusOr<bool> BeginNextPhase();
  absl::Status StartPhase(int64_t first_batch);
  absl::Status EndPhase();
  absl::Status InterruptPhaseEnd(const absl::Status& cancelled);
  // Sets context_.batch to this batch of the phase, which has it.
  absl::Status FetchBatch(int64_t number);
  bool PhaseHasSteps() const;
  // Batches that the next step takes.
  int64_t BatchesPerUpdate() const;
  absl::Status RunStep();
  absl::Status TestBatch();
  // Behind each batch: the loss of the phase, the counters.
  void CountBatch();
  void ResetMeters();
  absl::Status ReadMeters();

  std::unique_ptr<SelfSupervisionTask> task_;
  StopToken& stop_;
  unsigned snapshots_seen_;  // of stop_, which other loops may read, too
  StopToken hook_stop_;
  MetricStore metrics_;
  HookList hooks_;
  StepContext context_;
  CheckpointSaver* saver_ = nullptr;
  bool collects_saves_ = false;  // while Tell runs handlers
  std::vector<AskedSave> asked_saves_;
  // The hook whose save may still be written in the background, and of which iteration.
  std::string writing_for_;
  int64_t written_iteration_ = -1;
  int stop_reason_ = kStopNone;
  bool ended_early_ = false;
  std::string end_reason_;
  bool phase_is_running_ = false;
  std::optional<TrainingPause> test_phase_;  // while one runs
  bool within_step_ = false;                 // stays true when the step fails
  absl::Time step_begin_;                    // with the wait for its first batch
  double waited_before_ = 0;                 // the step, for other ranks
  bool failed_ = false;
  HookFailure hook_failure_;  // at the first error; hooks that are told of it may fail as well
  PhaseLoss phase_loss_;
};

}  // namespace ssl

#endif  // SSL_CORE_TRAINER_H_
