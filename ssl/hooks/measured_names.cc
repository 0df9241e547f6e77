// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/measured_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/core/core_options.h"
#include "ssl/core/meter.h"
#include "ssl/core/value_names.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/phase_values.h"

namespace ssl {
namespace {

struct Measured {
  std::vector<std::string> names;
  std::vector<std::string> lists;       // names, up to their output, that several values of a phase share
  std::vector<std::string> beginnings;  // of names that are not known
};

bool IsTrue(const ConfigNode& node, absl::string_view key, bool fallback) {
  const ConfigNode* value = node.Find(key);
  return value == nullptr ? fallback : value->AsBool().value_or(fallback);
}

// A hook as it runs: its values come from kwargs, then, for the one without a name, from its section.
struct Instance {
  std::string name;
  ConfigNode kwargs = ConfigNode::Map();
  const ConfigNode* section = nullptr;

  bool Is(absl::string_view key, bool by_default) const {
    const bool of_section = section == nullptr ? by_default : IsTrue(*section, key, by_default);
    return IsTrue(kwargs, key, of_section);
  }
};

// Of the hook `type`, which `key` of `section` turns on, and each of its entries in the list.
std::vector<Instance> InstancesOf(const std::string& type, absl::string_view section_path, absl::string_view key,
                                  const ConfigNode& config) {
  const ConfigNode& section = config.Section(section_path);
  std::map<std::string, Instance> instances;
  if (IsTrue(section, key, false)) instances[type] = {type, ConfigNode::Map(), &section};
  const absl::StatusOr<std::vector<HookEntry>> entries = ReadHookEntries(config);
  for (const HookEntry& entry : entries.ok() ? *entries : std::vector<HookEntry>()) {
    if (entry.type != type) continue;
    const bool is_of_section = entry.name.empty() || entry.name == type;
    const std::string name = is_of_section ? type : entry.name;
    instances[name] = {name, entry.kwargs, is_of_section ? &section : nullptr};
  }
  std::vector<Instance> all;
  for (const auto& [name, instance] : instances) all.push_back(instance);
  return all;
}

// The names that the meter gives; none when it does not say.
std::vector<ValueName> NamesOf(const std::string& meter, const BuildContext& context) {
  std::vector<ValueName> names;
  // A meter that is wrong has been refused.
  GuardTorch("a meter", [&]() -> absl::Status {
    const ConfigNode& section = context.config.Section(absl::StrCat("METERS.", meter));
    const absl::StatusOr<std::unique_ptr<Meter>> made = context.registries.meters.Make(meter, section, context);
    if (!made.ok()) return made.status();
    const auto* names_values = dynamic_cast<const NamesValues*>(made->get());
    if (names_values != nullptr) names = names_values->ValueNames();
    return absl::OkStatus();
  }).IgnoreError();
  return names;
}

void AddMeter(absl::string_view scope, const std::string& meter, const std::string& suffix, const BuildContext& context,
              Measured* measured) {
  const std::vector<ValueName> values = NamesOf(meter, context);
  const std::string beginning = absl::StrCat(scope, meter, suffix, "_");
  if (values.empty()) measured->beginnings.push_back(beginning);
  std::map<std::string, int> counts;
  for (const ValueName& value : values) {
    const std::string output = value.output.empty() ? "" : absl::StrCat("_Output_", value.output);
    const std::string name = absl::StrCat(beginning, value.metric, output);
    if (++counts[name] == 1) measured->names.push_back(name);
  }
  for (const auto& [name, count] : counts) {
    if (count == 1) continue;
    measured->names.erase(std::find(measured->names.begin(), measured->names.end(), name));
    measured->lists.push_back(name);
  }
}

Measured InPhases(absl::string_view scope, bool training, const BuildContext& context) {
  Measured measured;
  measured.names.push_back(absl::StrCat(scope, "loss_mean"));
  const absl::StatusOr<TaskOptions> options = ReadTaskOptions(context.config);
  if (!options.ok() || (training && !options->meters_in_training)) return measured;
  for (const std::string& meter : options->meters) {
    AddMeter(scope, meter, "", context, &measured);
    constexpr char kSwitch[] = "ENABLE_EMA_METERS";
    for (const Instance& ema : InstancesOf("ema", "HOOKS.EMA_MODEL", kSwitch, context.config)) {
      if (ema.Is(kSwitch, false)) AddMeter(scope, meter, absl::StrCat("_", ema.name), context, &measured);
    }
  }
  return measured;
}

void AddEvaluation(const Instance& eval, Measured* measured) {
  const std::string beginning = absl::StrCat("Evaluation/", eval.name == "eval" ? "" : absl::StrCat(eval.name, "_"));
  for (const auto& [key, name] : std::map<std::string, std::string>{{"KNN", "knn"}, {"LINEAR", "linear"}}) {
    if (!eval.Is(key, true)) continue;
    measured->names.push_back(absl::StrCat(beginning, name, "_top_1"));
    measured->names.push_back(absl::StrCat(beginning, name, "_top_5"));
  }
  if (eval.Is("LOSS", false)) measured->names.push_back(absl::StrCat(beginning, "loss_mean"));
}

Measured InEvaluations(const ConfigNode& config) {
  Measured measured;
  for (const Instance& eval : InstancesOf("eval", "HOOKS.EVAL", "ONLINE_EVALUATION", config)) {
    AddEvaluation(eval, &measured);
  }
  return measured;
}

// What the hook measures unless it is told not to. Not its loss: others have names for theirs that are as general.
Measured OfClassifications() {
  Measured measured;
  AddEvaluation({"eval"}, &measured);
  return measured;
}

bool Has(const Measured& measured, absl::string_view metric) {
  const auto begins = [metric](const std::string& beginning) { return absl::StartsWith(metric, beginning); };
  return std::find(measured.names.begin(), measured.names.end(), metric) != measured.names.end() ||
         std::any_of(measured.beginnings.begin(), measured.beginnings.end(), begins);
}

bool IsList(const Measured& measured, absl::string_view metric) {
  return std::any_of(measured.lists.begin(), measured.lists.end(), [metric](const std::string& list) {
    return metric == list || absl::StartsWith(metric, absl::StrCat(list, "_Output_"));
  });
}

// "config.TEST_MODEL is false (run.yaml:3)" when such settings keep the metric's phases out of the run; "" when not.
std::string WhyNeverMeasured(absl::string_view metric, const ConfigNode& config) {
  const auto is = [&config](absl::string_view key, bool value) {
    const ConfigNode* node = config.FindPath(key);
    return node != nullptr && node->AsBool().value_or(!value) == value;
  };
  const auto setting = [&config](absl::string_view key, absl::string_view value) {
    return absl::StrCat("config.", key, " is ", value, " (", config.FindPath(key)->location().ToString(), ")");
  };
  if (IsOfEvaluations(metric)) return "";
  const bool only_tests = is("TEST_ONLY", true);
  if (!IsOfTestPhases(metric)) return only_tests ? setting("TEST_ONLY", "true") : "";
  return !only_tests && is("TEST_MODEL", false) ? setting("TEST_MODEL", "false") : "";
}

// "; did you mean 'x'?", or "". A name that only begins right is that of a report, "Training/Loss" of metrics.jsonl for
// example, and no value of a phase.
std::string Suggestion(absl::string_view metric, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (absl::StartsWithIgnoreCase(name, metric)) return absl::StrCat("; did you mean '", name, "'?");
  }
  return DidYouMean(metric, names);
}

std::string FirstNames(const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 12;
  if (names.empty()) return "none";
  if (names.size() <= kMostNames) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMostNames, ", "), " and ",
                      names.size() - kMostNames, " more");
}

std::string WhyWrong(absl::string_view metric, const Measured& measured) {
  if (IsList(measured, metric)) {
    return "which has several values in each phase, expected a metric that has one";
  }
  if (IsOfEvaluations(metric) && Has(OfClassifications(), metric)) {
    return "which this run does not measure; config.HOOKS.EVAL.ONLINE_EVALUATION, KNN and LINEAR say what the hook "
           "eval measures";
  }
  const char* keys = IsOfEvaluations(metric)
                         ? "config.HOOKS.EVAL.ONLINE_EVALUATION, KNN, LINEAR and LOSS say what the hook eval measures"
                         : "config.METERS.names and enable_training_meter say what meters measure";
  const std::string meant = Suggestion(metric, measured.names);
  // metrics.jsonl has other names of training, which a reader may have copied.
  const char* when = IsOfTrainPhases(metric)
                         ? " at the end of a phase (names of the reports between, such as Training/Loss, are none)"
                         : "";
  return absl::StrCat("which this run does not measure", when, meant,
                      meant.empty() ? "; measured are " : " Measured are ", FirstNames(measured.names), "; ", keys,
                      "; what hooks of the program's own measure has names that start with Host/");
}

}  // namespace

absl::Status CheckPhaseMetric(absl::string_view metric, absl::string_view place, const BuildContext& context) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(place, " is '", metric, "', ", why));
  };
  if (IsOfHost(metric)) return absl::OkStatus();
  if (!IsOfTrainPhases(metric) && !IsOfTestPhases(metric) && !IsOfEvaluations(metric)) {
    return refused(
        "expected a name that starts with Training/, Testing/, Evaluation/ or Host/, such as Testing/loss_mean");
  }
  const std::string why_not = WhyNeverMeasured(metric, context.config);
  if (!why_not.empty()) return refused(absl::StrCat("which this run never measures: ", why_not));
  const absl::string_view scope = metric.substr(0, metric.find('/') + 1);
  const Measured measured =
      IsOfEvaluations(metric) ? InEvaluations(context.config) : InPhases(scope, IsOfTrainPhases(metric), context);
  if (Has(measured, metric) && !IsList(measured, metric)) return absl::OkStatus();
  return refused(WhyWrong(metric, measured));
}

}  // namespace ssl
