// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/phase_metrics_hook.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/host_values.h"
#include "ssl/hooks/phase_values.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kFile[] = "metrics.json";

using Json = nlohmann::ordered_json;

struct OutputValues {
  std::string output;
  std::vector<double> values;  // more than one: a list
};

struct MetricValues {
  std::string metric;
  std::vector<OutputValues> outputs;
};

// The values of a report by metric and output, in their order.
std::vector<MetricValues> Group(const std::vector<MeterValue>& values) {
  std::vector<MetricValues> groups;
  for (const MeterValue& value : values) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.metric == value.metric; });
    if (group == groups.end()) group = groups.insert(groups.end(), {value.metric, {}});
    std::vector<OutputValues>& outputs = group->outputs;
    auto output = std::find_if(outputs.begin(), outputs.end(), [&](const auto& o) { return o.output == value.output; });
    if (output == outputs.end()) output = outputs.insert(outputs.end(), {value.output, {}});
    output->values.push_back(value.value);
  }
  return groups;
}

Json ToJson(const MeterReport& report) {
  Json json = Json::object();
  for (const MetricValues& group : Group(report.values)) {
    Json& metric = json[group.metric] = Json::object();
    for (const OutputValues& output : group.outputs) {
      Json& place = output.output.empty() ? metric : metric[output.output];
      place = output.values.size() == 1 ? Json(output.values[0]) : Json(output.values);
    }
  }
  return json;
}

// "train", "test", or what a report says that its values are of.
std::string ScopeOf(const MeterReport& report, const StepContext& context) {
  if (!report.scope.empty()) return absl::AsciiStrToLower(report.scope);
  return context.state.training ? "train" : "test";
}

std::string FormatLine(const StepContext& context) {
  const TrainState& state = context.state;
  Json line = {
      {"iteration", state.iteration}, {"phase_idx", state.phase_index}, {"train_phase_idx", state.train_phase_index}};
  for (const MeterReport& report : context.meter_reports) {
    line[absl::StrCat(ScopeOf(report, context), "_", report.meter)] = ToJson(report);
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "accuracy_list_meter | top_1 res4 71.2000, res5 70.1000 | top_5 ...": without lists, and without a lone output's
// name.
std::string FormatForPeople(const MeterReport& report) {
  std::string text = report.meter;
  for (const MetricValues& group : Group(report.values)) {
    const char* separator = "";
    for (const OutputValues& output : group.outputs) {
      if (output.values.size() > 1) continue;
      if (*separator == '\0') absl::StrAppend(&text, " | ", group.metric);
      const std::string name = group.outputs.size() > 1 ? absl::StrCat(" ", output.output) : "";
      absl::StrAppendFormat(&text, "%s%s %.4f", separator, name, output.values[0]);
      separator = ",";
    }
  }
  return text;
}

void Log(const StepContext& context) {
  for (const MeterReport& report : context.meter_reports) {
    SSL_LOG(INFO) << ScopeOf(report, context) << " | epoch " << context.state.train_phase_index + 1 << "/"
                  << context.num_epochs << " | " << FormatForPeople(report);
  }
}

absl::StatusOr<std::unique_ptr<Hook>> MakePhaseMetrics(const PhaseMetricsOptions& options, const ConfigNode& params,
                                                       const BuildContext& context) {
  std::string path;
  if (!context.run_directory.empty()) {
    SSL_ASSIGN_OR_RETURN(path, FileInRun(context, "hook 'phase_metrics'", kFile));
  }
  return std::make_unique<PhaseMetricsHook>(context.file_system, path);
}

}  // namespace

PhaseMetricsHook::PhaseMetricsHook(FileSystem& file_system, const std::string& path) {
  if (path.empty()) return;
  // By iteration: the same update may have another phase number when a run goes on with other test phases.
  const std::vector<std::string> place_keys = {"iteration", "phase_idx", "train_phase_idx"};
  // What a hook of the program's own reports, it may report of train and test phases alike.
  file_ = std::make_unique<JsonLinesFile>(file_system, path, place_keys, /*anywhere=*/"host_");
}

std::vector<PlannedAction> PhaseMetricsHook::Plan() const {
  constexpr Cadence kEachEpoch{Cadence::Unit::kEpoch, 1, 1, 0, false};
  return {{"reports what meters say", kEachEpoch, /*in_test_phase=*/false, file_ == nullptr ? "" : kFile},
          {"reports what meters say", kEachEpoch, /*in_test_phase=*/true}};
}

// Those of `eval` are a report already.
absl::Status PhaseMetricsHook::OnStep(StepContext& context) {
  if (!HasHostValues(context)) return absl::OkStatus();
  // Only ranks that report something come here, because to ask the others would cost an operation in each step.
  SSL_RETURN_IF_ERROR(AverageHostValues(context));
  MetricReport report{context.state.iteration, context.state.train_phase_index, {}};
  for (const auto& [name, value] : PhaseValues(context)) {
    if (IsOfHost(name)) report.values[name] = value;
  }
  if (report.values.empty()) return absl::OkStatus();  // lists, which a report has not
  return context.metrics.Write(report, context.communicator);
}

absl::Status PhaseMetricsHook::OnPhaseEnd(StepContext& context) {
  const TrainState& state = context.state;
  SSL_RETURN_IF_ERROR(AverageHostValues(context));
  const MetricReport report{state.iteration, state.train_phase_index, PhaseValues(context)};
  SSL_RETURN_IF_ERROR(context.metrics.Write(report, context.communicator));
  const bool writes = context.communicator.rank() == 0;
  if (writes) Log(context);
  return AgreeOnStatus(writes ? Write(context) : absl::OkStatus(), "writing metrics.json", context.communicator);
}

absl::Status PhaseMetricsHook::Write(const StepContext& context) {
  if (file_ == nullptr) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(file_->Append(context.state.iteration, FormatLine(context)));
  return file_->Sync();
}

absl::Status RegisterPhaseMetricsHook(Registries* registries) {
  constexpr int kRank = -3;  // before early_stop and best_checkpoint: what they decide by stands in the files first
  return RegisterHook(registries,
                      {"phase_metrics", "what meters say of a phase: metrics.json, the log, the sinks", kRank},
                      &MakePhaseMetrics);
}

}  // namespace ssl
