// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/lr_scaling.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/config/world_shape.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/schedule_options.h"

namespace ssl {
namespace {

struct Scaling {
  double scaled = 0.0;         // the learning rate for the batch of all ranks
  double warm_up_start = 0.0;  // that for the batch of one node, always by the linear rule
  bool single_node = true;
};

// Sets a number where `key` stood, keeping the place that messages point to.
void SetNumber(ConfigNode* schedule, absl::string_view key, ConfigNode value) {
  const ConfigNode* old = schedule->Find(key);
  value.Relocate(old == nullptr ? schedule->location() : old->location());
  schedule->Set(key, std::move(value));
}

double RoundTo(double value, double unit) { return std::round(value / unit) * unit; }

using ScaleFunction = std::function<absl::Status(ConfigNode*, const ScheduleOptions&, const Scaling&)>;

// For schedules that one number scales.
ScaleFunction Sets(const char* key) {
  return [key](ConfigNode* schedule, const ScheduleOptions&, const Scaling& scaling) {
    SetNumber(schedule, key, ConfigNode::FromDouble(scaling.scaled));
    return absl::OkStatus();
  };
}

// Other values keep their ratio to the one at `key`, which therefore may not be 0.
absl::Status RefuseZero(const ConfigNode& schedule, absl::string_view key) {
  const ConfigNode* node = schedule.Find(key);
  const SourceLocation& location = node == nullptr ? schedule.location() : node->location();
  return absl::InvalidArgumentError(absl::StrCat(location.ToString(), ": param_schedulers.", key,
                                                 " is 0, expected a value that auto_lr_scaling can scale"));
}

absl::Status ScaleCosine(ConfigNode* schedule, const ScheduleOptions& options, const Scaling& scaling) {
  if (options.start_value == 0.0) return RefuseZero(*schedule, "start_value");
  const double ratio = options.end_value / options.start_value;
  SetNumber(schedule, "end_value", ConfigNode::FromDouble(scaling.scaled * ratio));
  SetNumber(schedule, "start_value", ConfigNode::FromDouble(scaling.scaled));
  return absl::OkStatus();
}

// All values follow from the first by the ratio of the first two, rounded as VISSL rounds them.
absl::Status ScaleSteps(ConfigNode* schedule, const ScheduleOptions& options, const Scaling& scaling) {
  const std::vector<double>& values = options.values;
  if (values.size() > 1 && values[0] == 0.0) return RefuseZero(*schedule, "values");
  const double gamma = values.size() < 2 ? 1.0 : RoundTo(values[1] / values[0], 1e-6);
  std::vector<double> scaled;
  for (size_t i = 0; i < values.size(); ++i) {
    scaled.push_back(RoundTo(scaling.scaled * std::pow(gamma, static_cast<double>(i)), 1e-8));
  }
  SetNumber(schedule, "values", ConfigNode::FromDoubles(scaled));
  return absl::OkStatus();
}

absl::Status ScaleSchedule(ConfigNode* schedule, const Scaling& scaling);

// The only remaining part takes the place of its composite.
void BecomePart(ConfigNode* composite, const ConfigNode& part) {
  for (const auto& [key, node] : part.entries()) composite->Set(key, node);
}

absl::Status ScaleComposite(ConfigNode* schedule, const ScheduleOptions& options, const Scaling& scaling) {
  ConfigNode kept = ConfigNode::List(options.schedulers.location());
  for (ConfigNode part : options.schedulers.items()) {
    SSL_RETURN_IF_ERROR(ScaleSchedule(&part, scaling));
    const ConfigNode* name = part.Find("name");
    if (name != nullptr && name->text() == "linear") {
      SetNumber(&part, "start_value", ConfigNode::FromDouble(scaling.warm_up_start));
      if (scaling.single_node && scaling.warm_up_start <= scaling.scaled) continue;
    }
    kept.Append(std::move(part));
  }
  schedule->Set("schedulers", kept);
  if (kept.items().size() == 1) BecomePart(schedule, kept.items()[0]);
  return absl::OkStatus();
}

absl::Status ScaleSchedule(ConfigNode* schedule, const Scaling& scaling) {
  const std::map<std::string, ScaleFunction> functions = {
      {"composite", &ScaleComposite},
      {"constant", Sets("value")},
      {"cosine", &ScaleCosine},
      {"cosine_warm_restart", &ScaleCosine},
      {"inverse_sqrt", Sets("start_value")},
      {"linear", Sets("end_value")},
      {"multistep", &ScaleSteps},
      {"step", &ScaleSteps},
      {"step_with_fixed_gamma", Sets("base_value")},
  };
  ScheduleOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(*schedule, "param_schedulers", UnknownKeys::kIgnore, &options));
  const auto found = functions.find(options.name);
  if (found == functions.end()) {
    const ConfigNode* name = schedule->Find("name");
    const SourceLocation& location = name == nullptr ? schedule->location() : name->location();
    std::vector<std::string> names;
    for (const auto& entry : functions) names.push_back(entry.first);
    return absl::InvalidArgumentError(absl::StrCat(location.ToString(), ": param_schedulers.name is '", options.name,
                                                   "', which auto_lr_scaling cannot scale; expected one of ",
                                                   absl::StrJoin(names, ", ")));
  }
  return found->second(schedule, options, scaling);
}

absl::StatusOr<int64_t> ReadBatchSize(const ConfigNode& config) {
  constexpr absl::string_view kPath = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
  const ConfigNode* node = config.FindPath(kPath);
  if (node == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("config.", kPath, " is missing, auto_lr_scaling needs it"));
  }
  SSL_ASSIGN_OR_RETURN(const int64_t size, node->AsInt());
  if (size >= 1) return size;
  return absl::InvalidArgumentError(
      absl::StrCat(node->location().ToString(), ": config.", kPath, " is ", size, ", expected at least 1"));
}

absl::Status ResolveSchedule(ConfigNode* schedule, const ConfigNode& config) {
  ScheduleOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(*schedule, "param_schedulers", UnknownKeys::kIgnore, &options));
  const AutoLrScalingOptions& automatic = options.auto_lr_scaling;
  if (!automatic.auto_scale) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t batch_size, ReadBatchSize(config));
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(config));

  const double node_factor =
      static_cast<double>(batch_size * world.ranks_per_node) / static_cast<double>(automatic.base_lr_batch_size);
  const double factor = node_factor * static_cast<double>(world.nodes);
  Scaling scaling;
  scaling.scaled = automatic.base_value * (automatic.scaling_type == "sqrt" ? std::sqrt(factor) : factor);
  scaling.warm_up_start = automatic.base_value * node_factor;
  scaling.single_node = world.nodes == 1;
  return ScaleSchedule(schedule, scaling);
}

}  // namespace

absl::Status ResolveLearningRateScaling(ConfigNode* config) {
  const ConfigNode* optimizer = config->FindPath("OPTIMIZER");
  if (optimizer == nullptr) return absl::OkStatus();
  HeadOptimizerOptions head;
  SSL_RETURN_IF_ERROR(ReadOptions(optimizer->Section("head_optimizer_params"), "config.OPTIMIZER.head_optimizer_params",
                                  UnknownKeys::kIgnore, &head));
  const ConfigNode* found = optimizer->FindPath("param_schedulers.lr");
  const ConfigNode* found_head = optimizer->FindPath("param_schedulers.lr_head");
  if (found == nullptr) return absl::OkStatus();
  ConfigNode lr = *found;
  SSL_RETURN_IF_ERROR(ResolveSchedule(&lr, *config));
  if (found_head != nullptr) {
    ConfigNode lr_head = head.use_different_lr ? *found_head : lr;
    if (head.use_different_lr) {
      SSL_RETURN_IF_ERROR(ResolveSchedule(&lr_head, *config));
    }
    config->SetPath("OPTIMIZER.param_schedulers.lr_head", std::move(lr_head));
  }
  config->SetPath("OPTIMIZER.param_schedulers.lr", std::move(lr));
  return absl::OkStatus();
}

}  // namespace ssl
