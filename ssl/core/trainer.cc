// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/standard_train_step.cc, what one step does.
#include "ssl/core/trainer.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/skipped_updates.h"
#include "ssl/core/train_step.h"
#include "ssl/distributed/agree.h"

namespace ssl {

Trainer::Trainer(std::unique_ptr<SelfSupervisionTask> task, TimedCommunicator& communicator, StopToken& stop)
    : task_(std::move(task)),
      stop_(stop),
      snapshots_seen_(stop.snapshot_requests()),
      context_{task_->state(), task_->model(), &task_->optimizer(), communicator, metrics_, hook_stop_, nullptr},
      phase_loss_(task_->device()) {
  context_.batch_size = task_->options().batch_size;
  context_.num_epochs = task_->options().num_epochs;
  context_.num_train_samples = task_->num_train_samples();
  context_.interruption = &stop_;
  context_.perf_stats.LeaveOut(communicator.waiting());
  task_->Measure(&context_.perf_stats);
}

absl::Status Trainer::Prepare() {
  SSL_RETURN_IF_ERROR(GuardTorch("preparing the method", [this] { return task_->method().Prepare(context_); }));
  for (std::unique_ptr<Hook>& hook : task_->method().MakeHooks()) SSL_RETURN_IF_ERROR(AddHook(std::move(hook)));
  return absl::OkStatus();
}

void Trainer::SetCheckpoints(CheckpointSaver* checkpoints) {
  saver_ = checkpoints;
  context_.checkpoints = checkpoints != nullptr ? this : nullptr;
}

std::vector<std::string> Trainer::HookNames() const {
  std::vector<std::string> names;
  for (const Hook* hook : hooks_.hooks()) names.emplace_back(hook->instance_name());
  return names;
}

RunPreview Trainer::Preview() const {
  return PreviewRun(hooks_.hooks(), task_->phases(), task_->updates_per_epoch(), task_->options().checkpoint.keep_last);
}

absl::Status Trainer::CheckMaySave() const {
  if (failed_) return absl::FailedPreconditionError("the run has failed: what it holds is not saved");
  if (!within_step_) return CheckSkippedUpdates(*task_, task_->state().iteration);
  return absl::FailedPreconditionError("a step is under way: its state can be saved from OnStep on");
}

// A checkpoint of one iteration is written once: made while a handler runs, it would lack what the next one notes.
absl::Status Trainer::Tell(const HookEvent& event) {
  asked_saves_.clear();
  collects_saves_ = true;
  const absl::Status told = hooks_.Run(event, context_);
  collects_saves_ = false;
  context_.meter_reports.clear();  // reports of one event are none of the next
  SSL_RETURN_IF_ERROR(told);
  if (asked_saves_.empty()) return absl::OkStatus();
  const TrainingPause pause(task_->device(), &context_.perf_stats);
  const absl::Status kept = KeepReports();
  if (!kept.ok()) return hooks_.Attribute(asked_saves_.front().hook, event.name, context_, kept);
  for (const AskedSave& asked : asked_saves_) SSL_RETURN_IF_ERROR(MakeAskedSave(asked, event));
  return absl::OkStatus();
}

// Before a save: else a loss of power could take reports that a run which goes on from there does not make again.
absl::Status Trainer::KeepReports() {
  return Annotate(AgreeOnStatus(metrics_.Flush(), "writing metrics", context_.communicator), "metrics before a save");
}

absl::Status Trainer::MakeAskedSave(const AskedSave& asked, const HookEvent& event) {
  const int64_t iteration = task_->state().iteration;
  if (iteration != written_iteration_) {  // else there is nothing to wait for
    const absl::Status earlier = Wait();
    if (!earlier.ok()) return hooks_.Attribute(writing_for_, event.name, context_, earlier);
    writing_for_ = asked.hook;
    written_iteration_ = iteration;
  }
  const absl::Status saved = MakeSave(asked);
  return saved.ok() ? saved : hooks_.Attribute(asked.hook, event.name, context_, saved);
}

absl::Status Trainer::MakeSave(const AskedSave& asked) {
  SSL_RETURN_IF_ERROR(CheckMaySave());
  if (!collects_saves_) return asked.name.empty() ? saver_->Save() : saver_->SaveAs(asked.name, asked.replaceable);
  asked_saves_.push_back(asked);
  return absl::OkStatus();
}

absl::Status Trainer::Save() { return MakeSave({"", false, hooks_.running()}); }

absl::Status Trainer::SaveAs(const std::string& name, bool replaceable) {
  return MakeSave({name, replaceable, hooks_.running()});
}

absl::StatusOr<int64_t> Trainer::Named(const std::string& name) { return saver_->Named(name); }

absl::StatusOr<bool> Trainer::NameSaved(const std::string& name, int64_t iteration) {
  return saver_->NameSaved(name, iteration);
}

absl::Status Trainer::Poll() { return saver_->Poll(); }

absl::Status Trainer::Wait() { return saver_->Wait(); }

absl::Status Trainer::Start() {
  TrainState& state = task_->state();
  context_.first_iteration = state.iteration;
  SSL_LOG(INFO) << "hooks: " << hooks_.Order();
  SeedForPhase(task_->options().run.seed, context_.communicator.rank(), state.phase_index);
  SSL_RETURN_IF_ERROR(Tell(kOnStart));
  if (state.phase_index < 0) return absl::OkStatus();
  // A checkpoint from the middle of a phase goes on in that phase; a finished phase is not entered again.
  state.training = task_->phases()[state.phase_index].train;
  return state.phase_ended == 0 ? StartPhase(state.batch_in_phase) : absl::OkStatus();
}

absl::StatusOr<bool> Trainer::Step() {
  SSL_ASSIGN_OR_RETURN(const bool ends, EndIsRequested());
  if (ends) return false;
  SSL_ASSIGN_OR_RETURN(const bool has_batch, NextBatch());
  if (!has_batch) return false;
  SSL_RETURN_IF_ERROR(RunStep());
  PerfStats& stats = context_.perf_stats;
  stats.Add(StepPart::kWaitForRanks, stats.SecondsWaited() - waited_before_);
  stats.Add(StepPart::kStepTotal, absl::ToDoubleSeconds(stats.Now() - step_begin_));
  SSL_RETURN_IF_ERROR(Tell(kOnStep));
  return true;
}

// Signals reach ranks at different times: they stop together, before the step at which the first of them was asked. The
// token of a rank that was not asked stays as it is, so that its own first signal is not taken for a second one. A stop
// comes before an end: the hook that wants the end says so again when the run goes on. Both save, so that a snapshot
// has nothing left to do then.
absl::StatusOr<bool> Trainer::EndIsRequested() {
  if (stop_reason_ != kStopNone || ended_early_) return true;
  at::Tensor asked = at::full({3}, stop_.reason(), at::kLong);
  asked[1].fill_(hook_stop_.reason());
  const unsigned snapshots = stop_.snapshot_requests();
  asked[2].fill_(snapshots != snapshots_seen_ ? 1 : 0);
  snapshots_seen_ = snapshots;
  SSL_RETURN_IF_ERROR(context_.communicator.AllReduce(asked, ReduceOp::kMax));
  const int from_outside = static_cast<int>(asked[0].item<int64_t>());
  const int from_hooks = static_cast<int>(asked[1].item<int64_t>());
  stop_reason_ = from_hooks > kStopUser ? std::max(from_outside, from_hooks) : from_outside;
  ended_early_ = stop_reason_ == kStopNone && from_hooks == kStopUser;
  if (ended_early_) NoteEarlyEnd();
  if (stop_reason_ != kStopNone || ended_early_) return true;
  if (asked[2].item<int64_t>() > 0) SSL_RETURN_IF_ERROR(SaveSnapshot());
  return false;
}

void Trainer::NoteEarlyEnd() {
  end_reason_ = !context_.end_reason.empty() ? context_.end_reason
                : hook_stop_.requested()     ? "a hook has asked for it"
                                             : "a hook of another rank has asked for it";
  if (context_.communicator.rank() != 0) return;
  SSL_LOG(INFO) << "the run ends early at iteration " << task_->state().iteration << ": " << end_reason_;
}

// What this process began with lies in a checkpoint, or the next process would make it again.
absl::Status Trainer::SaveSnapshot() {
  const int64_t iteration = task_->state().iteration;
  const bool is_new = saver_ != nullptr && iteration > context_.first_iteration;
  if (context_.communicator.rank() == 0) {
    SSL_LOG(INFO) << "snapshot asked for at iteration " << iteration
                  << (is_new ? ": saving, and going on" : ": there is nothing new to save, going on");
  }
  if (!is_new) return absl::OkStatus();
  const TrainingPause pause(task_->device(), &context_.perf_stats);
  absl::Status saved = KeepReports();
  if (saved.ok()) saved = Save();
  return Annotate(std::move(saved), absl::StrCat("snapshot asked for at iteration ", iteration));
}

absl::StatusOr<bool> Trainer::NextBatch() {
  while (true) {
    if (!phase_is_running_) {
      SSL_ASSIGN_OR_RETURN(const bool has_phase, BeginNextPhase());
      if (!has_phase) return false;
    }
    if (PhaseHasSteps()) {
      step_begin_ = context_.perf_stats.Now();  // not what hooks do between phases, an evaluation for example
      waited_before_ = context_.perf_stats.SecondsWaited();
      SSL_RETURN_IF_ERROR(FetchBatch(task_->state().batch_in_phase));
      return true;
    }
    SSL_RETURN_IF_ERROR(EndPhase());
  }
}

absl::Status Trainer::FetchBatch(int64_t number) {
  const TrainState& state = task_->state();
  // Here, so that a source of the host's may draw its batch from the generator, too.
  SeedForBatch(task_->options().run.seed, context_.communicator.rank(), state.phase_index, number);
  SSL_ASSIGN_OR_RETURN(context_.batch, task_->NextBatch());
  if (context_.batch != nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the source of the ", state.training ? "train" : "test",
                                          " phase ended after batch ", number, " of the ", context_.batches_per_epoch,
                                          " of its epoch"));
}

// Batches at the end of an epoch that are too few for an update are left out.
bool Trainer::PhaseHasSteps() const {
  return task_->state().batch_in_phase + BatchesPerUpdate() <= context_.batches_per_epoch;
}

int64_t Trainer::BatchesPerUpdate() const { return task_->state().training ? task_->options().batches_per_update : 1; }

absl::StatusOr<bool> Trainer::BeginNextPhase() {
  TrainState& state = task_->state();
  if (state.phase_index + 1 >= static_cast<int64_t>(task_->phases().size())) return false;
  // What a hook decides at the end of a phase holds before the next one takes a step.
  SSL_ASSIGN_OR_RETURN(const bool ends, EndIsRequested());
  if (ends) return false;
  ++state.phase_index;
  state.training = task_->phases()[state.phase_index].train;
  if (state.training) ++state.train_phase_index;
  SSL_RETURN_IF_ERROR(StartPhase(/*first_batch=*/0));
  return true;
}

absl::Status Trainer::StartPhase(int64_t first_batch) {
  TrainState& state = task_->state();
  state.batch_in_phase = first_batch;
  state.phase_ended = 0;
  if (!state.training) test_phase_.emplace(task_->device(), &context_.perf_stats);
  context_.source = &task_->source(state.training);
  context_.batches_per_epoch = context_.source->batches_per_epoch();
  context_.batches_per_update = BatchesPerUpdate();
  SSL_RETURN_IF_ERROR(task_->StartEpoch(first_batch));
  task_->model().SetTraining(state.training);
  if (state.training) task_->UpdateSchedules(Schedule::UpdateInterval::kEpoch);
  // A phase that a checkpoint interrupted goes on counting.
  first_batch == 0 ? ResetMeters() : phase_loss_.Fit(first_batch);
  phase_is_running_ = true;
  SeedForPhase(task_->options().run.seed, context_.communicator.rank(), state.phase_index);
  return Tell(kOnPhaseStart);
}

absl::Status Trainer::EndPhase() {
  phase_is_running_ = false;
  task_->state().phase_ended = 1;  // what a hook saves now goes on with the next phase
  SSL_RETURN_IF_ERROR(GuardTorch("reading the meters", [this] { return ReadMeters(); }));
  const absl::Status told = Tell(kOnPhaseEnd);
  test_phase_.reset();
  return absl::IsCancelled(told) ? InterruptPhaseEnd(told) : told;
}

// What is saved now is a run whose phase has not ended: the hooks behind the one that gave way never heard of it, and
// the process that goes on tells all of them.
absl::Status Trainer::InterruptPhaseEnd(const absl::Status& cancelled) {
  SSL_RETURN_IF_ERROR(EndIsRequested().status());
  if (stop_reason_ == kStopNone) return cancelled;
  hooks_.ForgetFailure();
  task_->state().phase_ended = 0;
  return absl::OkStatus();
}

void Trainer::ResetMeters() {
  for (const std::unique_ptr<Meter>& meter : task_->meters()) meter->Reset();
  phase_loss_.Reset();
}

absl::Status Trainer::ReadMeters() {
  WaitForDevice(task_->device(), &context_.perf_stats);
  SSL_ASSIGN_OR_RETURN(const double loss, phase_loss_.Mean(context_.communicator));
  context_.meter_reports.push_back({"loss", {{"mean", "", loss}}});
  if (task_->state().training && !task_->options().meters_in_training) return absl::OkStatus();
  for (const std::unique_ptr<Meter>& meter : task_->meters()) {
    SSL_ASSIGN_OR_RETURN(std::vector<MeterValue> values, meter->Values(context_.communicator));
    context_.meter_reports.push_back({std::string(meter->name()), std::move(values)});
  }
  return absl::OkStatus();
}

// What a train step sees of the loop.
class Trainer::Batches : public UpdateBatches {
 public:
  explicit Batches(Trainer* trainer) : trainer_(*trainer), first_(trainer_.task_->state().batch_in_phase) {}

  // NextBatch has fetched the first. A step may take the next one before it finishes the one before.
  absl::Status Next() override {
    if (taken_ > 0) SSL_RETURN_IF_ERROR(trainer_.FetchBatch(first_ + taken_));
    trainer_.context_.batch_in_update = taken_++;
    return trainer_.hooks_.Run(kOnBatchStart, trainer_.context_);
  }

  absl::Status Finish() override {
    SSL_RETURN_IF_ERROR(trainer_.task_->method().Advance(trainer_.context_));
    Count();
    return absl::OkStatus();
  }

  void Count() override {
    trainer_.CountBatch();
    ++counted_;
  }

  absl::Status CheckCounts() const {
    const int64_t count = trainer_.context_.batches_per_update;
    if (taken_ == count && counted_ == count) return absl::OkStatus();
    const std::string& name = trainer_.task_->options().trainer.train_step_name;
    return absl::InternalError(absl::StrCat("train step '", name, "' took ", taken_, " batches and counted ", counted_,
                                            " of an update that has ", count));
  }

 private:
  Trainer& trainer_;
  const int64_t first_;  // in the phase
  int64_t taken_ = 0;
  int64_t counted_ = 0;
};

absl::Status Trainer::RunStep() {
  within_step_ = true;
  TrainState& state = task_->state();
  metrics_.set_iteration(state.training ? state.iteration + 1 : state.iteration);
  if (state.training) {
    task_->optimizer().ZeroGrad();
    context_.found_inf.reset();
    Batches batches(this);
    SSL_RETURN_IF_ERROR(task_->train_step().Train(*task_, hooks_, batches, context_));
    SSL_RETURN_IF_ERROR(batches.CheckCounts());  // the run's position is that of its samples
    SSL_RETURN_IF_ERROR(WatchSkippedUpdates(*task_, context_.communicator));
    ++state.iteration;
  } else {
    SSL_RETURN_IF_ERROR(TestBatch());
  }
  within_step_ = false;
  return absl::OkStatus();
}

absl::Status Trainer::TestBatch() {
  context_.batch_in_update = 0;
  SSL_RETURN_IF_ERROR(hooks_.Run(kOnBatchStart, context_));
  SSL_RETURN_IF_ERROR(task_->train_step().Test(*task_, hooks_, context_));
  CountBatch();
  return absl::OkStatus();
}

void Trainer::CountBatch() {
  phase_loss_.Add(context_, task_->method());
  TrainState& state = task_->state();
  ++state.batch_in_phase;
  if (state.training) state.samples_seen += context_.batch->size() * context_.communicator.size();
}

absl::Status Trainer::Finish(const absl::Status& status) {
  absl::Status first = status;
  const auto flush = [this] { return GuardTorch("flushing the metrics", [this] { return metrics_.Flush(); }); };
  // Before the last save, as KeepReports. An error, which the system tells once, loses no checkpoint and is told last.
  const absl::Status flushed = first.ok() ? flush() : absl::OkStatus();
  if (first.ok()) first = GuardTorch("saving", [this] { return SaveAtEnd(); });
  if (!first.ok()) {
    hook_failure_ = hooks_.failure();
    failed_ = true;
    first.Update(hooks_.RunOnException(context_, first));
  }
  first.Update(hooks_.RunOnEnd(context_));
  // A host's OnEnd may have saved as well. After an error it is the checkpointer that lets a save end, without ranks.
  if (first.ok() && saver_ != nullptr) first = GuardTorch("saving", [this] { return saver_->Wait(); });
  first.Update(flushed);
  first.Update(flush());
  return first;
}

// A process that made no update has nothing that the next one would not make again, but that the run is finished.
absl::Status Trainer::SaveAtEnd() {
  const TrainState& state = task_->state();
  const bool finished = ended_early_ || state.finished(static_cast<int64_t>(task_->phases().size()));
  if (saver_ == nullptr || (state.iteration == context_.first_iteration && !finished)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(Save());
  return Wait();
}

void Trainer::VisitState(StateVisitor& visitor) {
  task_->VisitState(visitor);
  phase_loss_.VisitState(visitor);
  visitor.Scope("hooks", hooks_);
}

}  // namespace ssl
