// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/configured_hooks.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"

namespace ssl {
namespace {

// A component that a configuration may turn on. Its parameters are the keys below `section` that are present.
struct Row {
  absl::string_view name;
  absl::StatusOr<bool> (*enabled)(const BuildContext& context);
  absl::string_view section;  // relative to "config"; "" is the root
  std::vector<absl::string_view> keys;
};

absl::StatusOr<bool> Always(const BuildContext& context) { return true; }

absl::StatusOr<bool> Flag(const BuildContext& context, absl::string_view path, bool fallback) {
  const ConfigNode* node = context.config.FindPath(path);
  if (node == nullptr || node->is_null()) return fallback;
  return node->AsBool();
}

absl::StatusOr<bool> ChecksNan(const BuildContext& context) { return Flag(context, "HOOKS.CHECK_NAN", true); }

absl::StatusOr<bool> MasksOutputs(const BuildContext& context) {
  return Flag(context, "METERS.model_output_mask", false);
}

absl::StatusOr<bool> TimesSteps(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const bool monitors, Flag(context, "HOOKS.PERF_STATS.MONITOR_PERF_STATS", false));
  const ConfigNode* window = context.config.FindPath("HOOKS.PERF_STATS.ROLLING_BTIME_FREQ");
  if (monitors || window == nullptr || window->is_null()) return monitors;
  SSL_ASSIGN_OR_RETURN(const int64_t steps, window->AsInt());
  return steps > 0;
}

absl::StatusOr<bool> CountsOperations(const BuildContext& context) {
  return Flag(context, "HOOKS.MODEL_COMPLEXITY.COMPUTE_COMPLEXITY", false);
}

absl::StatusOr<bool> SummarizesMemory(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const bool prints, Flag(context, "HOOKS.MEMORY_SUMMARY.PRINT_MEMORY_SUMMARY", true));
  SSL_ASSIGN_OR_RETURN(const bool dumps, Flag(context, "HOOKS.MEMORY_SUMMARY.DUMP_MEMORY_ON_EXCEPTION", false));
  return prints || dumps;
}

absl::StatusOr<bool> ClipsGradients(const BuildContext& context) {
  return Flag(context, "MODEL.GRAD_CLIP.USE_GRAD_CLIP", false);
}

absl::StatusOr<bool> AveragesModel(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const bool saves, Flag(context, "HOOKS.EMA_MODEL.SAVE_EMA_MODEL", false));
  SSL_ASSIGN_OR_RETURN(const bool measures, Flag(context, "HOOKS.EMA_MODEL.ENABLE_EMA_METERS", false));
  return saves || measures;
}

absl::StatusOr<bool> FreezesParameters(const BuildContext& context) {
  const ConfigNode* frozen = context.config.FindPath("MODEL.TEMP_FROZEN_PARAMS_ITER_MAP");
  return frozen != nullptr && !frozen->is_null() && !(frozen->is_list() && frozen->items().empty());
}

absl::StatusOr<bool> KeepsFiles(const BuildContext& context) { return !context.run_directory.empty(); }

absl::StatusOr<bool> WritesTensorboard(const BuildContext& context) {
  if (context.run_directory.empty()) return false;
  return Flag(context, "HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD", false);
}

// In the order of insertion; within an event, stages decide.
std::vector<Row> HookRows() {
  return {
      {"perf_stats",
       &TimesSteps,
       "HOOKS.PERF_STATS",
       {"MONITOR_PERF_STATS", "PERF_STAT_FREQUENCY", "ROLLING_BTIME_FREQ"}},
      {"check_nan", &ChecksNan, "", {"LOG_FREQUENCY"}},
      {"model_output_mask", &MasksOutputs, "METERS", {}},
      {"grad_clip", &ClipsGradients, "MODEL.GRAD_CLIP", {"USE_GRAD_CLIP", "NORM_TYPE", "MAX_NORM"}},
      {"freeze_parameters", &FreezesParameters, "MODEL", {"TEMP_FROZEN_PARAMS_ITER_MAP"}},
      {"ema",
       &AveragesModel,
       "HOOKS.EMA_MODEL",
       {"SAVE_EMA_MODEL", "ENABLE_EMA_METERS", "UPDATE_ITER", "WARMUP", "DECAY", "EMA_DEVICE"}},
      {"checkpoint", &Always, "CHECKPOINT", {"CHECKPOINT_FREQUENCY", "CHECKPOINT_ITER_FREQUENCY"}},
      {"model_complexity", &CountsOperations, "HOOKS.MODEL_COMPLEXITY", {"COMPUTE_COMPLEXITY", "INPUT_SHAPE"}},
      {"phase_metrics", &Always, "", {}},
      {"train_logger", &Always, "", {"LOG_FREQUENCY"}},
      {"memory_summary",
       &SummarizesMemory,
       "HOOKS.MEMORY_SUMMARY",
       {"PRINT_MEMORY_SUMMARY", "LOG_ITERATION_NUM", "DUMP_MEMORY_ON_EXCEPTION"}},
  };
}

std::vector<Row> SinkRows() {
  return {
      {"jsonl", &KeepsFiles, "", {}},
      {"tensorboard", &WritesTensorboard, "HOOKS.TENSORBOARD_SETUP", {}},
  };
}

ConfigNode ParamsOf(const Row& row, const ConfigNode& config) {
  const ConfigNode* section = config.FindPath(row.section);
  if (section == nullptr) return ConfigNode::Map();
  ConfigNode params = ConfigNode::Map(section->location());
  for (const absl::string_view key : row.keys) {
    const ConfigNode* value = section->Find(key);
    if (value != nullptr) params.Set(key, *value);
  }
  return params;
}

template <class Interface>
absl::StatusOr<std::vector<std::unique_ptr<Interface>>> MakeEnabled(const std::vector<Row>& rows,
                                                                    const Registry<Interface>& registry,
                                                                    const BuildContext& context) {
  std::vector<std::unique_ptr<Interface>> made;
  for (const Row& row : rows) {
    SSL_ASSIGN_OR_RETURN(const bool enabled, row.enabled(context));
    if (!enabled) continue;
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Interface> component,
                         registry.Make(row.name, ParamsOf(row, context.config), context));
    made.push_back(std::move(component));
  }
  return made;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeConfiguredHooks(const BuildContext& context) {
  return MakeEnabled(HookRows(), context.registries.hooks, context);
}

absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> MakeConfiguredSinks(const BuildContext& context) {
  return MakeEnabled(SinkRows(), context.registries.metric_sinks, context);
}

}  // namespace ssl
