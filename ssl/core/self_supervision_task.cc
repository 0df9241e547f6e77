// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/trainer.cc, the loop that runs these parts.
#include "ssl/core/self_supervision_task.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/class_numbers.h"
#include "ssl/core/counted_samples.h"
#include "ssl/core/device_batch_source.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/equal_sources.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/core/head_outputs.h"
#include "ssl/core/label_check.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/read_ahead.h"
#include "ssl/core/renumbered_source.h"
#include "ssl/core/sharded_optimizer.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_step.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

constexpr int64_t kMostBucketMib = int64_t{1} << 40;  // more than any model, and as bytes no overflow

struct DatasetType : Options {
  std::string name = "generic_ssl";
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("BASE_DATASET", &name, Doc("data set type")); }
};

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSource(const BuildContext& context, const std::string& path) {
  const ConfigNode& section = context.config.Section(path);
  DatasetType type;
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", path), UnknownKeys::kIgnore, &type));
  return context.registries.batch_sources.Make(type.name, section, context);
}

std::optional<at::ScalarType> CompressionOf(const ReplicaOptions& options) {
  if (options.gradient_compression == "none") return std::nullopt;
  return options.gradient_compression == "bf16" ? at::kBFloat16 : at::kHalf;
}

bool IsShard(Model& model, const at::Tensor& parameter) {
  return model.parameter_shards() != nullptr && model.parameter_shards()->IsShard(parameter);
}

// What is to be reduced of what the optimizer updates, each once: in the model's order, then what a host's optimizer
// has beside the model.
std::vector<NamedParameter> TrainedParameters(Model& model, Optimizer& optimizer) {
  std::vector<NamedParameter> candidates = model.Parameters();
  if (model.parameter_shards() != nullptr) candidates.clear();  // backward has reduced the gradients of shards
  std::set<const c10::TensorImpl*> updated;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (IsShard(model, group.parameters[i])) continue;
      const std::string name = i < group.names.size() ? group.names[i] : absl::StrCat(group.name, ".", i);
      candidates.push_back({name, group.parameters[i]});
      updated.insert(group.parameters[i].unsafeGetTensorImpl());
    }
  }
  std::vector<NamedParameter> trained;
  for (NamedParameter& candidate : candidates) {
    if (updated.erase(candidate.value.unsafeGetTensorImpl()) > 0) trained.push_back(std::move(candidate));
  }
  return trained;
}

// Each group as one of shards, whose norms are over all ranks, and one of what every rank has whole: a model may have
// parameters outside its blocks, which would count once for each rank there.
std::vector<ParameterGroup> ApartFromShards(const std::vector<ParameterGroup>& groups, Model& model,
                                            Communicator& ranks) {
  std::vector<ParameterGroup> apart;
  for (const ParameterGroup& group : groups) {
    ParameterGroup shards = group;
    shards.names.clear();
    shards.parameters.clear();
    ParameterGroup whole = shards;
    shards.shard_ranks = &ranks;
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      ParameterGroup& kind = IsShard(model, group.parameters[i]) ? shards : whole;
      kind.parameters.push_back(group.parameters[i]);
      if (i < group.names.size()) kind.names.push_back(group.names[i]);
    }
    if (!shards.parameters.empty() || whole.parameters.empty()) apart.push_back(std::move(shards));
    if (!whole.parameters.empty()) apart.push_back(std::move(whole));
  }
  return apart;
}

}  // namespace

SelfSupervisionTask::SelfSupervisionTask(TaskOptions options, const c10::Device& device)
    : options_(std::move(options)), device_(device) {}
SelfSupervisionTask::~SelfSupervisionTask() = default;

absl::StatusOr<std::unique_ptr<SelfSupervisionTask>> SelfSupervisionTask::Build(TaskOptions options,
                                                                                const BuildContext& context,
                                                                                HostSources sources,
                                                                                const c10::Device& device) {
  auto task = std::unique_ptr<SelfSupervisionTask>(new SelfSupervisionTask(std::move(options), device));
  SeedForBuilding(task->options_.run.seed, context.communicator.rank());
  task->phases_ = task->MakePhasesBuilder().Build();
  // What throws ends the other ranks as well.
  const auto agree = [&context](const char* what, absl::FunctionRef<absl::Status()> build) {
    return AgreeOnStatus(GuardTorch(what, build), what, context.communicator);
  };
  // A disk may be missing on one host alone, and a stop may reach one rank first.
  SSL_RETURN_IF_ERROR(agree("opening the data", [&] { return task->BuildSources(context, std::move(sources)); }));
  SSL_RETURN_IF_ERROR(CheckEqualSources("config.DATA.TRAIN", task->train_source_.get(), context.communicator));
  SSL_RETURN_IF_ERROR(CheckEqualSources("config.DATA.TEST", task->test_source_.get(), context.communicator));
  // What is wrong with the configuration all ranks find alike, and one of them says.
  SSL_RETURN_IF_ERROR(agree("building the model", [&] { return task->BuildModel(context); }));
  SSL_RETURN_IF_ERROR(task->ShareModel(context.communicator));
  SSL_RETURN_IF_ERROR(agree("building the optimizer", [&] { return task->BuildOptimizer(context); }));
  SSL_RETURN_IF_ERROR(agree("building the loop", [&] { return task->BuildLoop(context); }));
  task->BuildReduction(context.communicator);
  if (!device.is_cpu()) {
    // One host alone may lack memory to pin.
    SSL_RETURN_IF_ERROR(agree("taking memory for batches", [&] { return task->BuildDeviceSources(); }));
  }
  return task;
}

PhasesBuilder SelfSupervisionTask::MakePhasesBuilder() const {
  const RunOptions& run = options_.run;
  return {options_.num_epochs, TestCadence(run), run.test_model, run.test_only};
}

std::vector<std::string> SelfSupervisionTask::available_splits() const { return MakePhasesBuilder().AvailableSplits(); }

int64_t SelfSupervisionTask::num_train_samples() const {
  const BatchSource* source = train_source_ != nullptr ? train_source_.get() : test_source_.get();
  return source != nullptr ? source->dataset_size() : 0;
}

absl::Status SelfSupervisionTask::BuildSources(const BuildContext& context, HostSources sources) {
  train_source_ = std::move(sources.train);
  test_source_ = std::move(sources.test);
  const auto is_train = [](const Phase& phase) { return phase.train; };
  const int64_t train_phases = std::count_if(phases_.begin(), phases_.end(), is_train);
  if (train_phases > 0 && train_source_ == nullptr) {
    SSL_ASSIGN_OR_RETURN(train_source_, MakeSource(context, "DATA.TRAIN"));
  }
  if (train_phases < static_cast<int64_t>(phases_.size()) && test_source_ == nullptr) {
    SSL_ASSIGN_OR_RETURN(test_source_, MakeSource(context, "DATA.TEST"));
  }
  if (train_phases == 0) return absl::OkStatus();
  const int64_t batches = train_source_->batches_per_epoch();
  state_.batches_per_update = options_.batches_per_update;
  updates_per_epoch_ = batches / options_.batches_per_update;
  state_.max_iterations = train_phases * updates_per_epoch_;
  if (batches >= options_.batches_per_update) return absl::OkStatus();
  // Above 1, so it was written somewhere.
  const ConfigNode& key = *context.config.FindPath("OPTIMIZER.grad_acc_steps");
  return absl::InvalidArgumentError(absl::StrCat(key.location().ToString(), ": config.OPTIMIZER.grad_acc_steps is ",
                                                 options_.batches_per_update, ", expected at most ", batches,
                                                 ", the batches of an epoch"));
}

absl::Status SelfSupervisionTask::BuildModel(const BuildContext& context) {
  const Registries& registries = context.registries;
  SSL_ASSIGN_OR_RETURN(model_, registries.models.Make(options_.model_name, context.config.Section("MODEL"), context));
  const std::string& loss = options_.loss.name;
  SSL_ASSIGN_OR_RETURN(method_,
                       registries.methods.Make(loss, context.config.Section(absl::StrCat("LOSS.", loss)), context));
  // A host's model may lie elsewhere by itself.
  if (!device_.is_cpu()) MoveState(*model_, device_);
  if (method_->labels_are_classes()) num_classes_ = LastHeadOutputs(context.config);
  return MatchLabels(context);
}

absl::Status SelfSupervisionTask::BuildDeviceSources() {
  const auto check = [this](const at::Tensor& targets) {
    return CheckTargets(targets, num_classes_, method_->ignored_label());
  };
  for (const auto& [source, on_device] :
       {std::pair{&train_source_, &device_train_source_}, std::pair{&test_source_, &device_test_source_}}) {
    if (*source == nullptr) continue;
    // Now: that of a test phase would else be missed after hours of training.
    if (auto* const ahead = dynamic_cast<ReadAhead*>(source->get())) SSL_RETURN_IF_ERROR(ahead->PrepareFor(device_));
    *on_device = std::make_unique<DeviceBatchSource>(**source, device_, check);
  }
  return absl::OkStatus();
}

BatchSource& SelfSupervisionTask::Batches() {
  const std::unique_ptr<DeviceBatchSource>& on_device = state_.training ? device_train_source_ : device_test_source_;
  if (on_device != nullptr) return *on_device;
  return state_.training ? *train_source_ : *test_source_;
}

// As in VISSL, samplers count train and test phases alike.
absl::Status SelfSupervisionTask::StartEpoch(int64_t first_batch) {
  return Batches().StartEpoch(state_.phase_index, first_batch);
}

void SelfSupervisionTask::Measure(PerfStats* stats) {
  perf_stats_ = stats;
  for (const auto* on_device : {&device_train_source_, &device_test_source_}) {
    if (*on_device != nullptr) (*on_device)->Measure(stats);
  }
}

absl::StatusOr<const Batch*> SelfSupervisionTask::NextBatch() {
  BatchSource& batches = Batches();
  if (perf_stats_ == nullptr || !device_.is_cpu()) return batches.Next();
  const PerfTimer timer(perf_stats_, StepPart::kReadSample);
  return batches.Next();
}

absl::Status SelfSupervisionTask::ShareModel(Communicator& communicator) {
  SSL_RETURN_IF_ERROR(CopyFromRankZero(*model_, communicator));  // whatever each rank drew
  if (!options_.trainer.shards_parameters() || communicator.size() == 1) return absl::OkStatus();
  return model_->ShardParameters(communicator);
}

// Before anything is trained, or removed for it: a wrong label may be met after hours only.
absl::Status SelfSupervisionTask::MatchLabels(const BuildContext& context) {
  if (train_source_ != nullptr) {
    SSL_RETURN_IF_ERROR(CheckLabels(*method_, "TRAIN", *train_source_, context.config));
  }
  SSL_RETURN_IF_ERROR(NumberClasses(context));
  if (test_source_ == nullptr) return absl::OkStatus();
  return CheckLabels(*method_, "TEST", *test_source_, context.config);
}

// The outputs of a classifier are the classes of training data, by their numbers there.
absl::Status SelfSupervisionTask::NumberClasses(const BuildContext& context) {
  if (!method_->labels_are_classes() || test_source_ == nullptr) return absl::OkStatus();
  if (train_source_ == nullptr) {
    if (test_source_->ClassNames().empty()) return absl::OkStatus();
    SSL_LOG(WARNING) << "config.TEST_ONLY: config.DATA.TRAIN is not read, so that class numbers are those of "
                        "config.DATA.TEST: its class folders have to be the same as those of training";
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(test_source_, NumberedAsInTraining(std::move(test_source_), *train_source_, context.config));
  return absl::OkStatus();
}

std::vector<std::string> SelfSupervisionTask::train_classes() const {
  const bool numbers_classes = method_->labels_are_classes() && train_source_ != nullptr;
  return numbers_classes ? train_source_->ClassNames() : std::vector<std::string>();
}

absl::Status SelfSupervisionTask::BuildOptimizer(const BuildContext& context) {
  const Registries& registries = context.registries;
  const ConfigNode& section = context.config.Section("OPTIMIZER");
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ParameterGrouper> grouper,
                       registries.parameter_groupers.Make(options_.parameter_grouping, section, context));
  SSL_ASSIGN_OR_RETURN(std::vector<ParameterGroup> groups, grouper->Group(model_->Parameters()));
  if (model_->parameter_shards() != nullptr) groups = ApartFromShards(groups, *model_, context.communicator);
  SSL_ASSIGN_OR_RETURN(optimizer_, registries.optimizers.Make(options_.optimizer_name, section, context));
  // The state for a shard is a shard already.
  const bool has_whole_state = model_->parameter_shards() == nullptr;
  if (options_.shards_optimizer && has_whole_state) {
    optimizer_ = ShardOptimizer(std::move(optimizer_), context.communicator);
  }
  SSL_RETURN_IF_ERROR(optimizer_->Initialize(std::move(groups)));
  return BuildSchedules(context);
}

absl::Status SelfSupervisionTask::BuildSchedules(const BuildContext& context) {
  for (const ParameterGroup& group : optimizer_->groups()) {
    for (const std::string& name :
         {group.learning_rate_schedule, group.weight_decay_schedule, group.momentum_schedule}) {
      if (name.empty() || schedules_.count(name) > 0) continue;
      const ConfigNode& section = context.config.Section(absl::StrCat("OPTIMIZER.param_schedulers.", name));
      const ConfigNode* kind = section.Find("name");
      SSL_ASSIGN_OR_RETURN(const std::string kind_name,
                           kind != nullptr ? kind->AsString() : absl::StatusOr<std::string>("constant"));
      SSL_ASSIGN_OR_RETURN(schedules_[name], context.registries.schedules.Make(kind_name, section, context));
    }
  }
  return absl::OkStatus();
}

absl::Status SelfSupervisionTask::BuildLoop(const BuildContext& context) {
  const Registries& registries = context.registries;
  SSL_ASSIGN_OR_RETURN(train_step_, registries.train_steps.Make(options_.trainer.train_step_name,
                                                                context.config.Section("TRAINER"), context));
  if (options_.precision.scales_loss) {
    GradScalerOptions scaler;
    scaler.static_scale = options_.precision.loss_scale;
    grad_scaler_ = std::make_unique<GradScaler>(scaler);
  }
  for (const std::string& name : options_.meters) {
    const ConfigNode& section = context.config.Section(absl::StrCat("METERS.", name));
    SSL_ASSIGN_OR_RETURN(meters_.emplace_back(), registries.meters.Make(name, section, context));
  }
  return absl::OkStatus();
}

void SelfSupervisionTask::BuildReduction(Communicator& communicator) {
  GradientReducerOptions reduction;
  reduction.bucket_bytes = std::min(options_.reduction.bucket_mib, kMostBucketMib) << 20;
  reduction.compression = CompressionOf(options_.replicas);
  gradient_reducer_ =
      std::make_unique<GradientReducer>(TrainedParameters(*model_, *optimizer_), reduction, communicator);
  buffer_broadcast_ = std::make_unique<BufferBroadcast>(*model_, communicator);
}

void SelfSupervisionTask::UpdateSchedules(Schedule::UpdateInterval due) {
  // A run that resumes within an epoch has the value of the epoch's start, too.
  const bool per_epoch = due == Schedule::UpdateInterval::kEpoch;
  const double where = per_epoch ? state_.where_phase_started() : state_.where();
  const auto update = [&](const std::string& name, double scale, double* value) {
    const auto schedule = schedules_.find(name);
    if (schedule == schedules_.end() || schedule->second->update_interval() != due) return;
    *value = scale * schedule->second->ValueAt(where);
  };
  for (ParameterGroup& group : optimizer_->groups()) {
    update(group.learning_rate_schedule, group.learning_rate_scale, &group.learning_rate);
    update(group.weight_decay_schedule, 1.0, &group.weight_decay);
    update(group.momentum_schedule, 1.0, &group.momentum);
  }
}

absl::Status SelfSupervisionTask::UpdateMeters(StepContext& context) {
  if (meters_.empty() || (state_.training && !options_.meters_in_training)) return absl::OkStatus();
  const c10::AutoGradMode no_gradients(false);
  for (const std::unique_ptr<Meter>& meter : meters_) {
    SSL_RETURN_IF_ERROR(UpdateWithCounted(context.outputs, context, *meter));
  }
  return absl::OkStatus();
}

void SelfSupervisionTask::VisitState(StateVisitor& visitor) {
  visitor.Scope("model", *model_);
  visitor.Scope("optimizer", *optimizer_);
  visitor.Scope("method", *method_);
  visitor.Scope("train_state", state_);
  for (const std::unique_ptr<Meter>& meter : meters_) visitor.Scope(absl::StrCat("meters/", meter->name()), *meter);
  if (grad_scaler_ != nullptr) visitor.Scope("grad_scaler", *grad_scaler_);
}

}  // namespace ssl
