// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/graph_train_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"
#include "ssl/core/hook_list.h"
#include "ssl/core/method.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/step_context.h"
#include "ssl/core/step_verbs.h"

namespace ssl {
namespace {

constexpr char kName[] = "graph_train_step";
// Made in full before one is recorded: what is made on first use, such as the state of an optimizer, is there then.
constexpr int64_t kFullUpdates = 2;

std::string HooksInTheMiddle(const HookList& hooks) {
  std::string names;
  for (const Hook* hook : hooks.hooks()) {
    if (hook->within_update() != WithinUpdate::kUnknown) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", hook->instance_name());
  }
  return names;
}

// What keeps all updates of the run from being recorded, and what to change; "" for nothing.
std::string Obstacle(SelfSupervisionTask& task, const HookList& hooks, const StepContext& context) {
  if (context.communicator.size() > 1) {
    return absl::StrCat("operations between ranks are not recorded, and there are ", context.communicator.size(),
                        " of them");
  }
  if (context.model.parameter_shards() != nullptr) {
    return "sharded parameters are gathered by operations between ranks (config.TRAINER.TASK_NAME)";
  }
  if (!task.optimizer().is_recordable()) {
    return absl::StrCat("optimizer '", task.options().optimizer_name,
                        "' takes learning rates from the host (config.OPTIMIZER.name); sgd, adam, adamw and lars can "
                        "be recorded, without use_zero");
  }
  if (!task.method().RecordingKey(context).has_value()) {
    return absl::StrCat("loss '", task.options().loss.name,
                        "' does not say that its operations stay the same (config.LOSS.name, Method::RecordingKey)");
  }
  const std::string names = HooksInTheMiddle(hooks);
  if (names.empty()) return "";
  return absl::StrCat("hook ", names, " may have to be called in the middle of an update (Hook::within_update); turn ",
                      "it off to have updates recorded");
}

UpdateKey KeyOf(SelfSupervisionTask& task, const HookList& hooks, const std::vector<Batch>& batches,
                const StepContext& context) {
  UpdateKey key;
  key.Add(absl::StrCat("what loss '", task.options().loss.name, "' computes"),
          {task.method().RecordingKey(context).value_or(0)});
  for (const Hook* hook : hooks.hooks()) {
    if (hook->within_update() != WithinUpdate::kComputes) continue;
    key.Add(absl::StrCat("what hook '", hook->instance_name(), "' computes"), {hook->RecordingKey(context)});
  }
  key.Add("the number of batches", {static_cast<int64_t>(batches.size())});
  for (const Batch& batch : batches) key.AddLayout("the shape of a batch", batch);
  key.AddGroups(task.optimizer().groups());
  return key;
}

std::vector<at::Tensor> Gradients(Optimizer& optimizer) {
  std::vector<at::Tensor> gradients;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (const at::Tensor& parameter : group.parameters) gradients.push_back(parameter.grad());
  }
  return gradients;
}

void SetGradients(const std::vector<at::Tensor>& gradients, Optimizer& optimizer) {
  auto gradient = gradients.begin();
  for (ParameterGroup& group : optimizer.groups()) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad() = *gradient++;
  }
}

// The groups' tensors while it lives: updates that are made in full take the same as those that are repeated.
class LearningRateTensors {
 public:
  LearningRateTensors(std::vector<ParameterGroup>& groups, const at::Tensor& rates) : groups_(groups) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].learning_rate_tensor = rates.select(0, static_cast<int64_t>(g));
    }
  }
  ~LearningRateTensors() {
    for (ParameterGroup& group : groups_) group.learning_rate_tensor.reset();
  }
  LearningRateTensors(const LearningRateTensors&) = delete;
  LearningRateTensors& operator=(const LearningRateTensors&) = delete;

 private:
  std::vector<ParameterGroup>& groups_;
};

}  // namespace

absl::Status GraphTrainStep::Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                                   StepContext& context) {
  if (next_graph_ == nullptr && has_graphs_) {
    SSL_ASSIGN_OR_RETURN(next_graph_, make_graph_(task.device().type()));
    has_graphs_ = next_graph_ != nullptr;
  }
  if (!has_graphs_) {
    TellOnce(absl::StrCat(task.device().str(), " has nothing to record: updates are those of standard_train_step"));
    return standard_.Train(task, hooks, batches, context);
  }
  const std::string obstacle = obstacle_.empty() ? Obstacle(task, hooks, context) : obstacle_;
  if (!obstacle.empty()) {
    TellOnce(absl::StrCat("updates are not recorded, but those of standard_train_step: ", obstacle));
    recording_ = nullptr;
    slots_.clear();
    return standard_.Train(task, hooks, batches, context);
  }
  return GuardTorch(kName, [&] { return TrainOnHeld(task, hooks, batches, context); });
}

absl::Status GraphTrainStep::TrainOnHeld(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                                         StepContext& context) {
  if (recording_ != nullptr) slots_ = recording_->batches;
  HeldBatches held(&slots_, batches, context);
  SSL_RETURN_IF_ERROR(held.Take());
  task.UpdateSchedules(Schedule::UpdateInterval::kStep);
  UpdateKey key = KeyOf(task, hooks, slots_, context);
  const bool repeats = recording_ != nullptr && key.Difference(recording_->key).empty();
  const bool is_settled = updates_with_key_ >= kFullUpdates && key.Difference(last_key_).empty();
  WriteLearningRates(task);
  const LearningRateTensors tensors(task.optimizer().groups(), learning_rates_);
  if (!repeats && !is_settled) return TrainFully(task, hooks, held, context, key);
  if (repeats) {
    const PerfTimer timer(&context.perf_stats, StepPart::kForward);
    recording_->graph->Replay();
    ++replays_;
    updates_with_key_ = 0;
  } else {
    SSL_RETURN_IF_ERROR(Record(task, hooks, context, std::move(key)));
  }
  return Observe(task, hooks, batches, context);
}

absl::Status GraphTrainStep::TrainFully(SelfSupervisionTask& task, HookList& hooks, HeldBatches& held,
                                        StepContext& context, const UpdateKey& key) {
  const std::string difference = key.Difference(last_key_);
  if (recording_ != nullptr) {
    TellOnce(absl::StrCat("an update is made in full, because ", key.Difference(recording_->key),
                          " has changed; it is recorded anew once ", kFullUpdates, " updates in a row are alike"));
    // Memory of the recording serves nothing else.
    const bool may_come_again = key.DiffersByLayoutAlone(recording_->key);
    if (!may_come_again || !recording_->graph->HasRoomBeside()) recording_ = nullptr;
  } else if (updates_with_key_ > 0 && !difference.empty()) {
    TellOnce(absl::StrCat("updates are made in full while they differ: ", difference, " has changed"));
  }
  updates_with_key_ = difference.empty() ? updates_with_key_ + 1 : 1;
  last_key_ = key;
  SSL_RETURN_IF_ERROR(standard_.Train(task, hooks, held, context));
  if (!held.drew_numbers()) return absl::OkStatus();
  obstacle_ = absl::StrCat("random numbers, as of dropout, drop path or a hook, are drawn anew for each of ",
                           context.batches_per_update,
                           " batches (config.OPTIMIZER.grad_acc_steps); a run that draws none can be recorded");
  return absl::OkStatus();
}

absl::Status GraphTrainStep::Record(SelfSupervisionTask& task, HookList& hooks, StepContext& context, UpdateKey key) {
  const int64_t iteration = task.state().iteration;
  recording_ = nullptr;  // gives its memory back
  auto recording = std::make_unique<Recording>();
  recording->key = std::move(key);
  recording->batches = slots_;
  recording->graph = std::move(next_graph_);
  const absl::Status recorded = recording->graph->Record([&] {
    return GuardTorch("recording an update", [&] { return RunUpdate(task, hooks, context, recording.get()); });
  });
  if (!recorded.ok()) {
    // Tensors of the work have no values, and hooks still look at the context.
    context.outputs.clear();
    context.loss.reset();
    return Annotate(recorded, absl::StrCat("recording the update of iteration ", iteration, ", a part of which may be ",
                                           "done (config.TRAINER.TRAIN_STEP_NAME standard_train_step records "
                                           "nothing)"));
  }
  recording_ = std::move(recording);
  ++recordings_;
  SSL_LOG(INFO) << kName << ": the update of iteration " << iteration << " is recorded for the next ones";
  return absl::OkStatus();
}

absl::Status GraphTrainStep::RunUpdate(SelfSupervisionTask& task, HookList& hooks, StepContext& context,
                                       Recording* recording) {
  const HookList::Only computing(hooks, WithinUpdate::kComputes);
  for (size_t i = 0; i < slots_.size(); ++i) {
    context.batch = &slots_[i];
    context.batch_in_update = static_cast<int64_t>(i);
    SSL_RETURN_IF_ERROR(TrainOnBatch(task, hooks, context, MeterUse::kLeaveOut));
    SSL_RETURN_IF_ERROR(task.method().Advance(context));
    recording->losses.push_back(context.loss);
    recording->outputs.push_back(context.outputs);
  }
  recording->gradients = Gradients(task.optimizer());
  recording->found_inf = context.found_inf;
  return absl::OkStatus();
}

absl::Status GraphTrainStep::Observe(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                                     StepContext& context) {
  const HookList::Only observing(hooks, WithinUpdate::kObserves);
  SetGradients(recording_->gradients, task.optimizer());
  context.found_inf = recording_->found_inf;
  for (size_t i = 0; i < slots_.size(); ++i) {
    context.batch = &slots_[i];
    context.batch_in_update = static_cast<int64_t>(i);
    context.outputs = recording_->outputs[i];
    context.loss = recording_->losses[i].clone();  // the next replay writes over what it has recorded
    {
      const AutocastScope autocast(task.options().precision.autocast);
      SSL_RETURN_IF_ERROR(hooks.Run(kOnForward, context));
      SSL_RETURN_IF_ERROR(GuardTorch("meters", [&] { return task.UpdateMeters(context); }));
      SSL_RETURN_IF_ERROR(hooks.Run(kOnLossAndMeter, context));
    }
    if (EndsUpdate(context)) {
      SSL_RETURN_IF_ERROR(hooks.Run(kOnBackward, context));
      SSL_RETURN_IF_ERROR(hooks.Run(kOnUpdate, context));
    }
    batches.Count();
  }
  return absl::OkStatus();
}

// By numbers that are arguments of an operation, which nobody waits for.
void GraphTrainStep::WriteLearningRates(SelfSupervisionTask& task) {
  const at::NoGradGuard no_grad;
  const std::vector<ParameterGroup>& groups = task.optimizer().groups();
  const int64_t count = static_cast<int64_t>(groups.size());
  if (!learning_rates_.defined() || learning_rates_.size(0) != count) {
    // The fused operations of CUDA read a float.
    const at::ScalarType type = task.device().is_cuda() ? at::kFloat : at::kDouble;
    learning_rates_ = at::empty({count}, at::TensorOptions(task.device()).dtype(type));
    written_.assign(groups.size(), std::numeric_limits<double>::quiet_NaN());
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (written_[g] == groups[g].learning_rate) continue;
    learning_rates_.select(0, static_cast<int64_t>(g)).fill_(groups[g].learning_rate);
    written_[g] = groups[g].learning_rate;
  }
}

absl::Status GraphTrainStep::Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  return standard_.Test(task, hooks, context);
}

void GraphTrainStep::TellOnce(const std::string& line) {
  if (told_.insert(line).second) SSL_LOG(INFO) << kName << ": " << line;
}

namespace {

std::string ObstacleIn(const ConfigNode& config) {
  constexpr char kRecomputes[] = "MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING";
  const ConfigNode* recomputes = config.FindPath(kRecomputes);
  if (recomputes == nullptr || !recomputes->AsBool().value_or(false)) return "";
  return absl::StrCat("blocks that run again in backward set the generators back on the host (config.", kRecomputes,
                      " is true)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainStep>> MakeGraphTrainStep(const ConfigNode& params, const BuildContext& context) {
  // Copies: what a factory gets is valid during its call alone.
  Registries registries;
  registries.device_graphs = context.registries.device_graphs;
  Communicator& communicator = context.communicator;
  const auto make_graph = [params, registries, config = context.config,
                           &communicator](c10::DeviceType type) -> absl::StatusOr<std::unique_ptr<DeviceGraph>> {
    const std::string name = c10::DeviceTypeName(type, /*lower_case=*/true);
    if (!registries.device_graphs.Has(name)) return nullptr;
    return registries.device_graphs.Make(name, params, {config, registries, communicator});
  };
  return std::make_unique<GraphTrainStep>(make_graph, ObstacleIn(context.config));
}

}  // namespace ssl
