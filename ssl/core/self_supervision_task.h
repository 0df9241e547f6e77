// SPDX-License-Identifier: Apache-2.0
//
// The parts of one training run, built from a configuration in the order of the data flow: source, model, method,
// optimizer, schedules, meters. The task owns them and all their state.
#ifndef SSL_CORE_SELF_SUPERVISION_TASK_H_
#define SSL_CORE_SELF_SUPERVISION_TASK_H_

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/core_options.h"
#include "ssl/core/grad_scaler.h"
#include "ssl/core/meter.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/phases_builder.h"
#include "ssl/core/registries.h"
#include "ssl/core/schedule.h"
#include "ssl/core/stateful.h"
#include "ssl/core/train_state.h"

namespace ssl {

class BufferBroadcast;
class DeviceBatchSource;
class GradientReducer;
class PerfStats;
class TrainStep;
struct StepContext;

// Sources that a host brings itself; where null, the configuration says what to build.
struct HostSources {
  std::unique_ptr<BatchSource> train;
  std::unique_ptr<BatchSource> test;
};

class SelfSupervisionTask : public Stateful {
 public:
  // device: where the run computes. Parts are made on the CPU, so that they draw the same numbers everywhere, and the
  // model moves there before anything else holds its tensors; a method moves what it keeps in Prepare.
  //
  // Errors name the key with its file:line. May throw LibTorch exceptions.
  static absl::StatusOr<std::unique_ptr<SelfSupervisionTask>> Build(TaskOptions options, const BuildContext& context,
                                                                    HostSources sources, const c10::Device& device);
  ~SelfSupervisionTask() override;

  const TaskOptions& options() const { return options_; }
  const std::vector<Phase>& phases() const { return phases_; }
  TrainState& state() { return state_; }
  Model& model() { return *model_; }
  Method& method() { return *method_; }
  Optimizer& optimizer() { return *optimizer_; }
  TrainStep& train_step() { return *train_step_; }
  // Null unless gradients are float16.
  GradScaler* grad_scaler() { return grad_scaler_.get(); }
  // Of what the optimizer updates.
  GradientReducer& gradient_reducer() { return *gradient_reducer_; }
  BufferBroadcast& buffer_broadcast() { return *buffer_broadcast_; }
  const std::vector<std::unique_ptr<Meter>>& meters() const { return meters_; }

  const c10::Device& device() const { return device_; }

  // From here on NextBatch adds its times there; `stats` outlives the calls.
  void Measure(PerfStats* stats);

  // Starts the epoch that the state names, of the current phase, at batch `first_batch`. May throw LibTorch exceptions.
  absl::Status StartEpoch(int64_t first_batch);
  // The next batch of the current phase, on the device; null at its end. Valid until the next call. May throw LibTorch
  // exceptions.
  absl::StatusOr<const Batch*> NextBatch();

  // Of a train or a test phase; its batches are read by StartEpoch and NextBatch.
  const BatchSource& source(bool train) const { return train ? *train_source_ : *test_source_; }
  // The splits that the run reads, in VISSL's order: TEST, TRAIN.
  std::vector<std::string> available_splits() const;
  // In the training set, over all ranks; the test set's when nothing trains.
  int64_t num_train_samples() const;
  // What the outputs of a classifier stand for, by number; none where classes have no names or are not learned.
  std::vector<std::string> train_classes() const;
  // Of a train phase; 0 when nothing trains.
  int64_t updates_per_epoch() const { return updates_per_epoch_; }

  // Writes what the schedules say into the parameter groups when a new value is due: before each update, or at the
  // start of a train phase.
  void UpdateSchedules(Schedule::UpdateInterval due);

  // Adds context.outputs to the meters that the current phase has. May throw LibTorch exceptions.
  absl::Status UpdateMeters(StepContext& context);

  // model/, optimizer/, method/, train_state/, meters/, grad_scaler/.
  void VisitState(StateVisitor& visitor) override;

 private:
  SelfSupervisionTask(TaskOptions options, const c10::Device& device);

  PhasesBuilder MakePhasesBuilder() const;
  absl::Status BuildSources(const BuildContext& context, HostSources sources);
  // Model and method.
  absl::Status BuildModel(const BuildContext& context);
  absl::Status MatchLabels(const BuildContext& context);
  absl::Status NumberClasses(const BuildContext& context);
  absl::Status ShareModel(Communicator& communicator);
  absl::Status BuildOptimizer(const BuildContext& context);
  absl::Status BuildSchedules(const BuildContext& context);
  // Train step, loss scale and meters.
  absl::Status BuildLoop(const BuildContext& context);
  void BuildReduction(Communicator& communicator);
  absl::Status BuildDeviceSources();
  // What gives the batches of the current phase.
  BatchSource& Batches();

  const TaskOptions options_;
  const c10::Device device_;
  std::vector<Phase> phases_;
  std::unique_ptr<BatchSource> train_source_;
  std::unique_ptr<BatchSource> test_source_;
  // Around those; null where these are, and on the CPU.
  std::unique_ptr<DeviceBatchSource> device_train_source_;
  std::unique_ptr<DeviceBatchSource> device_test_source_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Method> method_;
  std::unique_ptr<Optimizer> optimizer_;
  // By their names under OPTIMIZER.param_schedulers; those that a group asks for.
  std::map<std::string, std::unique_ptr<Schedule>> schedules_;
  std::unique_ptr<TrainStep> train_step_;
  std::unique_ptr<GradScaler> grad_scaler_;
  std::unique_ptr<GradientReducer> gradient_reducer_;
  std::unique_ptr<BufferBroadcast> buffer_broadcast_;
  std::vector<std::unique_ptr<Meter>> meters_;
  TrainState state_;
  // The outputs that class labels may name, by the configuration; 0 when it does not tell.
  int64_t num_classes_ = 0;
  int64_t updates_per_epoch_ = 0;
  PerfStats* perf_stats_ = nullptr;
};

}  // namespace ssl

#endif  // SSL_CORE_SELF_SUPERVISION_TASK_H_
