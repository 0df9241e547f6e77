// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/ema_hook.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/counted_samples.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/shared_options.h"
#include "ssl/core/state_dict.h"
#include "ssl/hooks/register_component.h"
#include "ssl/optim/ema.h"

namespace ssl {
namespace {

bool IsShard(Model& model, const at::Tensor& tensor) {
  return model.parameter_shards() != nullptr && model.parameter_shards()->IsShard(tensor);
}

// Puts averages into the model while it lives: the model's tensors keep their identity and lend their storage, so that
// a graph that saved them, between forward and backward, finds them unchanged afterwards. A shard keeps its storage,
// which whole parameters are gathered from; graphs save those, not shards.
class AveragedModel {
 public:
  AveragedModel(Model& model, std::vector<at::Tensor>& values, const std::vector<at::Tensor>& averages,
                bool was_training)
      : model_(model), values_(values), was_training_(was_training) {
    // The cache holds short copies of the model's own weights.
    at::autocast::set_autocast_cache_enabled(false);
    for (size_t i = 0; i < values_.size(); ++i) {
      originals_.push_back(values_[i].variable_data());
      if (IsShard(model_, values_[i])) originals_[i] = originals_[i].clone();
      Put(averages[i], &values_[i]);
    }
    model_.SetTraining(false);
  }

  ~AveragedModel() {
    for (size_t i = 0; i < values_.size(); ++i) Put(originals_[i], &values_[i]);
    model_.SetTraining(was_training_);
    at::autocast::set_autocast_cache_enabled(cache_was_enabled_);
  }

  AveragedModel(const AveragedModel&) = delete;
  AveragedModel& operator=(const AveragedModel&) = delete;

 private:
  void Put(const at::Tensor& data, at::Tensor* value) const {
    if (IsShard(model_, *value)) {
      value->variable_data().copy_(data);
    } else {
      value->set_data(data);
    }
  }

  Model& model_;
  std::vector<at::Tensor>& values_;
  std::vector<at::Tensor> originals_;
  const bool was_training_;
  const bool cache_was_enabled_ = at::autocast::is_autocast_cache_enabled();
};

absl::Status OfOtherTensors() {
  return absl::InvalidArgumentError(
      "the checkpoint's moving averages are of other tensors than the model has; those that an older version has saved "
      "with config.TRAINER.TASK_NAME self_supervision_fsdp_task go on with that task and as many ranks");
}

// rows: [n] each. Returns [N].
at::Tensor OneRow(const std::vector<at::Tensor>& rows) { return rows.empty() ? at::zeros({0}) : at::cat(rows); }

// Takes tensors out of a row, one after the other.
class Reader {
 public:
  explicit Reader(at::Tensor row) : row_(std::move(row)) {}

  // False when too little is left.
  bool Read(at::Tensor* tensor) {
    if (!row_.defined() || offset_ + tensor->numel() > row_.numel()) return false;
    tensor->copy_(row_.narrow(0, offset_, tensor->numel()).view(tensor->sizes()));
    offset_ += tensor->numel();
    return true;
  }

  bool is_at_end() const { return !row_.defined() || offset_ == row_.numel(); }

 private:
  const at::Tensor row_;
  int64_t offset_ = 0;
};

absl::StatusOr<std::unique_ptr<Hook>> MakeEma(const EmaHookOptions& options, const ConfigNode& params,
                                              const BuildContext& context) {
  std::vector<std::unique_ptr<Meter>> meters;
  MeasuredOptions measured;  // of the run, for an instance with a name of its own, too
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("METERS"), "config.METERS", UnknownKeys::kIgnore, &measured));
  if (options.enable_ema_meters) {
    for (const std::string& name : measured.names) {
      const ConfigNode& section = context.config.Section(absl::StrCat("METERS.", name));
      SSL_ASSIGN_OR_RETURN(meters.emplace_back(), context.registries.meters.Make(name, section, context));
    }
  }
  return std::make_unique<EmaHook>(options, std::move(meters), measured.enable_training_meter);
}

}  // namespace

void EmaHookOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("SAVE_EMA_MODEL", &save_ema_model, Doc("keep moving averages of the model, in checkpoints, too"));
  visitor.Field("ENABLE_EMA_METERS", &enable_ema_meters, Doc("measure the averaged model with all of METERS.names"));
  visitor.Field("UPDATE_ITER", &update_iter, Doc("updates of the model for each of the averages").AtLeast(1));
  visitor.Field("WARMUP", &warmup, Doc("fraction of training in which averages are copies").Between(0, 1));
  visitor.Field("DECAY", &decay, Doc("what is kept of an average").Between(0, 1));
  visitor.Field("EMA_DEVICE", &ema_device,
                Doc("where averages lie: gpu is where the model does").OneOf({"gpu", "cpu"}));
}

EmaHook::EmaHook(const EmaHookOptions& options, std::vector<std::unique_ptr<Meter>> meters, bool in_training)
    : options_(options), meters_(std::move(meters)), in_training_(in_training) {}

std::vector<PlannedAction> EmaHook::Plan() const {
  std::vector<PlannedAction> plan = {
      {"updates the averages", {Cadence::Unit::kUpdate, options_.update_iter, 1, 0, false}}};
  constexpr Cadence kEachEpoch{Cadence::Unit::kEpoch, 1, 1, 0, false};
  constexpr char kMeasures[] = "measures the averaged model";
  if (!meters_.empty() && in_training_) plan.push_back({kMeasures, kEachEpoch});
  if (!meters_.empty()) plan.push_back({kMeasures, kEachEpoch, /*in_test_phase=*/true});
  return plan;
}

absl::Status EmaHook::OnStart(StepContext& context) {
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(context.model));
  std::set<const void*> parameters;
  for (const NamedParameter& parameter : context.model.Parameters()) {
    parameters.insert(parameter.value.const_data_ptr());
  }
  std::string names;
  values_.clear();
  averages_.clear();
  are_parameters_.clear();
  for (const NamedTensor& entry : state) {
    if (entry.tensor.scalar_type() != at::kFloat) continue;
    if (options_.ema_device == "cpu" && !entry.tensor.is_cpu()) {
      return absl::UnimplementedError(absl::StrCat("config.HOOKS.EMA_MODEL.EMA_DEVICE is cpu, but the model is on ",
                                                   entry.tensor.device().str(),
                                                   "; expected gpu, which keeps averages beside the model"));
    }
    absl::StrAppend(&names, entry.name, "\n");
    values_.push_back(entry.tensor);
    averages_.push_back(entry.tensor.detach().clone());
    are_parameters_.push_back(parameters.count(entry.tensor.const_data_ptr()) > 0);
  }
  if (IsPacked()) {
    if (names != names_) return OfOtherTensors();
    SSL_RETURN_IF_ERROR(Unpack());
  }
  names_ = std::move(names);
  return absl::OkStatus();
}

void EmaHook::Pack() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> of_parameters;
  std::vector<at::Tensor> of_buffers;
  for (size_t i = 0; i < averages_.size(); ++i) {
    (are_parameters_[i] ? of_parameters : of_buffers).push_back(averages_[i].reshape({-1}));
  }
  of_parameters_ = OneRow(of_parameters);
  of_buffers_.packed.values = OneRow(of_buffers);
}

void EmaHook::DropPacked() {
  of_parameters_.reset();
  of_buffers_.packed.values.reset();
}

absl::Status EmaHook::Unpack() {
  const at::NoGradGuard no_grad;
  const bool are_in_one_row = !of_buffers_.packed.values.defined();
  Reader of_parameters(of_parameters_);
  Reader of_buffers(of_buffers_.packed.values);
  for (size_t i = 0; i < averages_.size(); ++i) {
    Reader& row = are_parameters_[i] || are_in_one_row ? of_parameters : of_buffers;
    if (!row.Read(&averages_[i])) return OfOtherTensors();
  }
  if (!of_parameters.is_at_end() || !of_buffers.is_at_end()) return OfOtherTensors();
  DropPacked();
  return absl::OkStatus();
}

WithinUpdate EmaHook::within_update() const {
  return options_.update_iter == 1 && meters_.empty() ? WithinUpdate::kComputes : WithinUpdate::kObserves;
}

absl::Status EmaHook::OnUpdate(StepContext& context) {
  if (context.state.iteration % options_.update_iter != 0) return absl::OkStatus();
  EmaUpdate(averages_, values_, IsWarm(context) ? options_.decay : 0.0);
  return absl::OkStatus();
}

absl::Status EmaHook::OnStep(StepContext&) {
  DropPacked();
  return absl::OkStatus();
}

bool EmaHook::Measures(const StepContext& context) const {
  return !meters_.empty() && (in_training_ || !context.state.training);
}

absl::Status EmaHook::OnPhaseStart(StepContext& context) {
  // A phase that a checkpoint interrupted goes on counting.
  if (context.state.batch_in_phase > 0) return absl::OkStatus();
  for (const std::unique_ptr<Meter>& meter : meters_) meter->Reset();
  return absl::OkStatus();
}

absl::Status EmaHook::OnLossAndMeter(StepContext& context) {
  if (!Measures(context)) return absl::OkStatus();
  return GuardTorch("measuring the averaged model", [&] { return Measure(context); });
}

absl::Status EmaHook::Measure(StepContext& context) {
  const at::NoGradGuard no_grad;
  const Batch& batch = *context.batch;
  std::vector<at::Tensor> outputs;
  {
    const AveragedModel averaged(context.model, values_, averages_, context.state.training);
    outputs = batch.named_inputs.empty() ? context.model.Forward(batch.views)
                                         : context.model.ForwardNamed(batch.named_inputs);
  }
  for (const std::unique_ptr<Meter>& meter : meters_) SSL_RETURN_IF_ERROR(UpdateWithCounted(outputs, context, *meter));
  return absl::OkStatus();
}

absl::Status EmaHook::OnPhaseEnd(StepContext& context) {
  if (!Measures(context)) return absl::OkStatus();
  for (const std::unique_ptr<Meter>& meter : meters_) {
    SSL_ASSIGN_OR_RETURN(std::vector<MeterValue> values, meter->Values(context.communicator));
    context.meter_reports.push_back({absl::StrCat(meter->name(), "_", instance_name()), std::move(values)});
  }
  return absl::OkStatus();
}

void AddedAverages::VisitState(StateVisitor& visitor) {
  visitor.ScopesMayDiffer();
  visitor.Scope("averages", packed);
}

void EmaHook::VisitState(StateVisitor& visitor) {
  if (!averages_.empty()) Pack();
  visitor.Text("names", names_);
  visitor.Tensor("averages", of_parameters_);
  visitor.Scope("buffers", of_buffers_);
  for (const std::unique_ptr<Meter>& meter : meters_) visitor.Scope(absl::StrCat("meters/", meter->name()), *meter);
  // A run that has not started yet unpacks when it knows its model.
  visitor.OnRestored([this] {
    // Restored into rows of these very sizes.
    if (!averages_.empty()) Unpack().IgnoreError();
  });
}

absl::Status RegisterEmaHook(Registries* registries) {
  return RegisterHook(registries, {"ema", "moving averages of the model, and meters of the averaged model"}, &MakeEma);
}

}  // namespace ssl
