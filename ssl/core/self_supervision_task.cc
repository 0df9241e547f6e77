// SPDX-License-Identifier: Apache-2.0
//
// Next stop for a reader: ssl/core/trainer.cc, the loop that runs these parts.
#include "ssl/core/self_supervision_task.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/parameter_grouper.h"
#include "ssl/distributed/communicator.h"

namespace ssl {
namespace {

struct DatasetType : Options {
  std::string name = "generic_ssl";
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("BASE_DATASET", &name, Doc("data set type")); }
};

// The node at `path`, in place, so that components can tell where it stands; or an empty map, of which a component
// reports what it misses.
const ConfigNode& Section(const ConfigNode& config, absl::string_view path) {
  static const auto* const empty = new ConfigNode(ConfigNode::Map());
  const ConfigNode* node = config.FindPath(path);
  return node != nullptr && node->is_map() ? *node : *empty;
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSource(const BuildContext& context, const std::string& path) {
  const ConfigNode& section = Section(context.config, path);
  DatasetType type;
  SSL_RETURN_IF_ERROR(ReadOptions(section, absl::StrCat("config.", path), UnknownKeys::kIgnore, &type));
  return context.registries.batch_sources.Make(type.name, section, context);
}

// Parameters start equal on all ranks, whatever each one drew.
absl::Status BroadcastParameters(Model& model, Communicator& communicator) {
  for (NamedParameter& parameter : model.Parameters()) {
    at::Tensor value = parameter.value.detach();
    SSL_RETURN_IF_ERROR(communicator.Broadcast(value, 0));
  }
  return absl::OkStatus();
}

}  // namespace

SelfSupervisionTask::SelfSupervisionTask(TaskOptions options) : options_(std::move(options)) {}
SelfSupervisionTask::~SelfSupervisionTask() = default;

absl::StatusOr<std::unique_ptr<SelfSupervisionTask>> SelfSupervisionTask::Build(TaskOptions options,
                                                                                const BuildContext& context,
                                                                                HostSources sources) {
  auto task = std::unique_ptr<SelfSupervisionTask>(new SelfSupervisionTask(std::move(options)));
  RandomState::Seed(task->options_.run.seed, context.communicator.rank());
  SSL_RETURN_IF_ERROR(task->BuildPhases());
  SSL_RETURN_IF_ERROR(task->BuildSources(context, std::move(sources)));
  SSL_RETURN_IF_ERROR(task->BuildModel(context));
  SSL_RETURN_IF_ERROR(task->BuildOptimizer(context));
  return task;
}

absl::Status SelfSupervisionTask::BuildPhases() {
  const RunOptions& run = options_.run;
  phases_ = PhasesBuilder{options_.num_epochs, run.test_every_num_epoch, run.test_model, run.test_only}.Build();
  return absl::OkStatus();
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
  if (train_phases > 0) state_.max_iterations = train_phases * train_source_->batches_per_epoch();
  return absl::OkStatus();
}

absl::Status SelfSupervisionTask::BuildModel(const BuildContext& context) {
  const Registries& registries = context.registries;
  SSL_ASSIGN_OR_RETURN(model_, registries.models.Make(options_.model_name, Section(context.config, "MODEL"), context));
  SSL_RETURN_IF_ERROR(BroadcastParameters(*model_, context.communicator));
  const std::string& loss = options_.loss.name;
  SSL_ASSIGN_OR_RETURN(method_,
                       registries.methods.Make(loss, Section(context.config, absl::StrCat("LOSS.", loss)), context));
  return absl::OkStatus();
}

absl::Status SelfSupervisionTask::BuildOptimizer(const BuildContext& context) {
  const Registries& registries = context.registries;
  const ConfigNode& section = Section(context.config, "OPTIMIZER");
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ParameterGrouper> grouper,
                       registries.parameter_groupers.Make(options_.parameter_grouping, section, context));
  SSL_ASSIGN_OR_RETURN(std::vector<ParameterGroup> groups, grouper->Group(model_->Parameters()));
  SSL_ASSIGN_OR_RETURN(optimizer_, registries.optimizers.Make(options_.optimizer_name, section, context));
  SSL_RETURN_IF_ERROR(optimizer_->Initialize(std::move(groups)));
  const ConfigNode& schedule = Section(context.config, "OPTIMIZER.param_schedulers.lr");
  const ConfigNode* name = schedule.Find("name");
  SSL_ASSIGN_OR_RETURN(const std::string schedule_name,
                       name != nullptr ? name->AsString() : absl::StatusOr<std::string>("constant"));
  SSL_ASSIGN_OR_RETURN(learning_rate_, registries.schedules.Make(schedule_name, schedule, context));
  return absl::OkStatus();
}

void SelfSupervisionTask::UpdateLearningRate(Schedule::UpdateInterval due) {
  if (learning_rate_->update_interval() != due) return;
  // A run that resumes within an epoch has the value of the epoch's start, too.
  const bool per_epoch = due == Schedule::UpdateInterval::kEpoch;
  const double value = learning_rate_->ValueAt(per_epoch ? state_.where_phase_started() : state_.where());
  for (ParameterGroup& group : optimizer_->groups()) group.learning_rate = value;
}

void SelfSupervisionTask::VisitState(StateVisitor& visitor) {
  visitor.Scope("model", *model_);
  visitor.Scope("optimizer", *optimizer_);
  visitor.Scope("method", *method_);
  visitor.Scope("random", random_);
  visitor.Scope("train_state", state_);
}

}  // namespace ssl
