// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/configured_hooks.h"

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
      {"check_nan", &ChecksNan, "HOOKS", {}},
      {"freeze_parameters", &FreezesParameters, "MODEL", {"TEMP_FROZEN_PARAMS_ITER_MAP"}},
      {"checkpoint", &Always, "CHECKPOINT", {"CHECKPOINT_FREQUENCY", "CHECKPOINT_ITER_FREQUENCY"}},
      {"train_logger", &Always, "", {"LOG_FREQUENCY"}},
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
