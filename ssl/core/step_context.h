// SPDX-License-Identifier: Apache-2.0
//
// What hooks and methods see of a training run: the run's parts, and the step in progress.
#ifndef SSL_CORE_STEP_CONTEXT_H_
#define SSL_CORE_STEP_CONTEXT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/meter.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Saves the run's state; implemented by the checkpointer. All calls are collective.
//
// What hooks ask to be saved in OnStart, OnPhaseStart, OnStep or OnPhaseEnd is saved once all handlers of the event
// have run: it holds what each of them has noted in it, whatever their order. The error of such a save is the run's
// then.
class CheckpointSaver {
 public:
  virtual ~CheckpointSaver() = default;
  // Writes checkpoints/step_<iteration> unless that one exists and is intact. One from within a phase is
  // replaced in one step where hooks have noted more since: at the phase's end. May return
  // while the files are still being written, from a copy of the state; the error of an earlier such save is returned
  // first.
  virtual absl::Status Save() = 0;
  // For the end of each step: the error of a save that has ended since. Does not wait.
  virtual absl::Status Poll() = 0;
  // Returns when everything is on disk, with the error of what could not be written.
  virtual absl::Status Wait() = 0;
  // Save, Wait, and from then on the checkpoint has `name` (letters, digits, '_', '-', '.') in place of the one that
  // had it: it is kept, and not counted among those that KEEP_LAST keeps. A `replaceable` one goes when the name moves
  // on, unless it has another name or was asked for in another way (Save, or a name that is not replaceable) as well.
  virtual absl::Status SaveAs(const std::string& name, bool replaceable) = 0;
  // The iteration of the checkpoint that has the name, whether it is there or not; -1 for none.
  virtual absl::StatusOr<int64_t> Named(const std::string& name) = 0;
  // Gives the name to the checkpoint of `iteration`; false when there is none: then nothing has the name.
  virtual absl::StatusOr<bool> NameSaved(const std::string& name, int64_t iteration) = 0;
};

// References outlive the context; tensors belong to the current step.
struct StepContext {
  TrainState& state;
  Model& model;
  Optimizer* optimizer;  // null in runs that do not train
  Communicator& communicator;
  MetricStore& metrics;
  StopToken& stop;               // what hooks ask for
  CheckpointSaver* checkpoints;  // null when the run keeps none

  // Constants of the run.
  int64_t batch_size = 0;         // per rank
  int64_t batches_per_epoch = 0;  // of the current phase, on this rank
  int64_t num_epochs = 0;
  int64_t num_train_samples = 0;  // in the training set, over all ranks; the test set's when nothing trains
  int64_t first_iteration = 0;    // state.iteration when this process started
  // What who runs the run asks for: long work of a hook ends soon after. Ranks hear of it at different times. Null:
  // nobody can ask.
  const StopToken* interruption = nullptr;

  PerfStats perf_stats = {};  // of all steps of this process

  // Gradient accumulation: this batch's number within the update, of how many (1 in test phases). OnBatchStart and the
  // forward events come with every batch; OnBackward, OnUpdate and OnStep once per update.
  int64_t batch_in_update = 0;
  int64_t batches_per_update = 1;
  // From OnBackward on, with a loss scale: float32 [] where the gradients are. 1: the gradients of a rank overflowed in
  // float16, so that this update changes nothing but the loss scale; they are not finite then. 0: those of every rank
  // are finite. It is the same on all ranks, and UnscaleGradients (step_verbs.h) of the next update overwrites it; to
  // read it is to wait for the device. Undefined without a loss scale.
  at::Tensor found_inf = {};

  // What this rank's first RequestStop said; "" while there was none.
  std::string end_reason = {};

  // Of the current phase; for what it knows about the data, not for reading batches.
  const BatchSource* source = nullptr;

  // What the meters say about the phase that ends; set before OnPhaseEnd. Hooks may add their own there, in stages
  // before kPersist, and in OnStep and OnPhaseStart what they have measured at that moment: early_stop and
  // best_checkpoint read it in the same event, metrics.json has that of phase ends. Emptied after each event.
  std::vector<MeterReport> meter_reports = {};

  const Batch* batch = nullptr;
  std::vector<at::Tensor> outputs = {};  // of the model
  at::Tensor loss = {};                  // scalar; with its graph until backward

  // A hook's decision that nothing is left to do: the run ends after the step or phase in progress, on all ranks, saved
  // and finished (ssl/core/trainer.h). `why` is what the log, FINISHED and the summary say, such as "early_stop: no
  // better loss for 3 phases"; of several the first.
  void RequestStop(std::string why) {
    if (end_reason.empty()) end_reason = std::move(why);
    stop.Request(kStopUser);
  }
};

}  // namespace ssl

#endif  // SSL_CORE_STEP_CONTEXT_H_
