// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/testing/fakes.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/zeros_like.h>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/meter.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/core/schedule.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

// outputs: one [V*B, 3] tensor. Draws noise from the default generator in training, as dropout would.
class LinearModel : public Model {
 public:
  LinearModel() : weight_(at::randn({3, 16}).mul_(0.1).requires_grad_(true)) {}

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& view : views) rows.push_back(view.flatten(1).matmul(weight_.t()));
    at::Tensor output = at::cat(rows);
    if (training_) output = output + at::randn_like(output) * 0.01;
    return {output};
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    return std::vector<at::Tensor>(requests.size(), images.flatten(1).matmul(weight_.detach().t()));
  }
  std::vector<NamedParameter> Parameters() override { return {{"weight", weight_, false}}; }
  void SetTraining(bool training) override { training_ = training; }
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("weight", weight_); }

 private:
  at::Tensor weight_;
  bool training_ = true;
};

// Pulls the two views together, and the mean norm to one.
class AlignmentMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext& context) override {
    const std::vector<at::Tensor> halves = context.outputs[0].chunk(2);
    const at::Tensor distance = (halves[0] - halves[1]).pow(2).mean();
    context.loss = distance + (context.outputs[0].pow(2).mean() - 1.0).pow(2);
    return absl::OkStatus();
  }
  absl::Status Advance(StepContext& context) override {
    ++steps_;
    return absl::OkStatus();
  }
  void VisitState(StateVisitor& visitor) override { visitor.Int("steps", steps_); }

 private:
  int64_t steps_ = 0;
};

class MomentumOptimizer : public Optimizer {
 public:
  absl::Status Initialize(std::vector<ParameterGroup> groups) override {
    groups_ = std::move(groups);
    momentum_ = at::zeros_like(groups_[0].parameters[0]);
    return absl::OkStatus();
  }
  std::vector<ParameterGroup>& groups() override { return groups_; }
  void Step(const at::Tensor& found_inf) override {
    if (SkipsUpdate(found_inf)) return;
    at::Tensor& parameter = groups_[0].parameters[0];
    momentum_.mul_(0.9).add_(parameter.grad());
    parameter.add_(momentum_, -groups_[0].learning_rate);
  }
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("momentum", momentum_); }

 private:
  std::vector<ParameterGroup> groups_;
  at::Tensor momentum_;
};

class OneGroup : public ParameterGrouper {
 public:
  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    return std::vector<ParameterGroup>{{"all", {parameters[0].name}, {parameters[0].value}, 0.0, 0.0}};
  }
};

// Counts samples; the value of output "0" is their number.
class CountingMeter : public Meter {
 public:
  absl::string_view name() const override { return "counting_meter"; }
  absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) override {
    count_ += targets.size(0);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) override {
    return std::vector<MeterValue>{{"samples", "0", static_cast<double>(count_)}};
  }
  void Reset() override { count_ = 0; }
  void VisitState(StateVisitor& visitor) override { visitor.Int("count", count_); }

 private:
  int64_t count_ = 0;
};

template <Schedule::UpdateInterval interval>
class LinearDecay : public Schedule {
 public:
  double ValueAt(double where) const override { return 0.02 * (1.0 - where); }
  UpdateInterval update_interval() const override { return interval; }
};

template <class Interface, class Implementation>
absl::Status Add(Registry<Interface>& registry, const std::string& name) {
  return registry.Register(name, [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Interface>>(std::make_unique<Implementation>());
  });
}

}  // namespace

FakeSource::FakeSource(int64_t samples, int64_t batch_size, int64_t rank, int64_t world_size)
    : samples_(samples), batch_size_(batch_size), rank_(rank), world_size_(world_size) {}

int64_t FakeSource::batches_per_epoch() const { return samples_ / (batch_size_ * world_size_); }

absl::Status FakeSource::StartEpoch(int64_t epoch, int64_t first_batch) {
  epoch_ = epoch;
  next_ = first_batch;
  return absl::OkStatus();
}

absl::StatusOr<const Batch*> FakeSource::Next() {
  if (next_ >= batches_per_epoch()) return nullptr;
  at::Generator order = at::detail::createCPUGenerator(epoch_);
  const int64_t begin = (next_++ * world_size_ + rank_) * batch_size_;
  batch_.indices = at::randperm(samples_, order, at::kLong).slice(0, begin, begin + batch_size_).clone();
  batch_.targets = batch_.indices.remainder(5);
  const at::Tensor images = (batch_.indices.view({-1, 1, 1, 1}) + at::arange(16).view({1, 1, 4, 4})).sin();
  batch_.views = {images, images + batch_.indices.view({-1, 1, 1, 1}).cos() * 0.1};
  return &batch_;
}

absl::Status RegisterFakes(Registries* registries) {
  SSL_RETURN_IF_ERROR(
      registries->batch_sources.Register("generic_ssl", [](const ConfigNode&, const BuildContext& context) {
        const Communicator& communicator = context.communicator;
        return absl::StatusOr<std::unique_ptr<BatchSource>>(
            std::make_unique<FakeSource>(40, 4, communicator.rank(), communicator.size()));
      }));
  SSL_RETURN_IF_ERROR((Add<Model, LinearModel>(registries->models, "multi_input_output_model")));
  SSL_RETURN_IF_ERROR((Add<Meter, CountingMeter>(registries->meters, "counting_meter")));
  SSL_RETURN_IF_ERROR((Add<Method, AlignmentMethod>(registries->methods, "swav_loss")));
  SSL_RETURN_IF_ERROR((Add<Optimizer, MomentumOptimizer>(registries->optimizers, "sgd")));
  SSL_RETURN_IF_ERROR((Add<ParameterGrouper, OneGroup>(registries->parameter_groupers, "default")));
  SSL_RETURN_IF_ERROR(
      (Add<Schedule, LinearDecay<Schedule::UpdateInterval::kEpoch>>(registries->schedules, "linear_by_epoch")));
  return Add<Schedule, LinearDecay<Schedule::UpdateInterval::kStep>>(registries->schedules, "linear");
}

ConfigNode FakeConfig(const std::string& run_directory) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(false));
  config.SetPath("LOSS.name", ConfigNode::FromString("swav_loss"));
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(2));
  config.SetPath("OPTIMIZER.param_schedulers.lr.name", ConfigNode::FromString("linear"));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(4));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run_directory));
  return config;
}

absl::Status RecordingHook::Record(const std::string& event, StepContext& context) {
  events_->push_back(absl::StrCat(name_, ".", event, "@", context.state.iteration));
  return action_ != nullptr && event == event_ ? action_(context) : absl::OkStatus();
}

}  // namespace ssl
