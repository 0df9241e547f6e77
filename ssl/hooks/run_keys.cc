// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/run_keys.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/same_value.h"
#include "ssl/core/component.h"
#include "ssl/hooks/hook_entries.h"

namespace ssl {
namespace {

// What the run's key does not take, told of the key that the user has written.
bool AddWrongValues(absl::string_view theirs, const ConfigNode& value, const std::string& ours,
                    const Registries& registries, std::vector<ConfigProblem>* problems) {
  ConfigNode alone = ConfigNode::Map();
  alone.SetPath(ours, value);
  const std::vector<ConfigProblem> wrong = registries.options.Problems(alone);
  for (const ConfigProblem& problem : wrong) {
    absl::string_view rest = problem.text;
    absl::ConsumePrefix(&rest, absl::StrCat("config.", ours));
    problems->push_back({value.location(), absl::StrCat(theirs, rest)});
  }
  return !wrong.empty();
}

void SetEach(const HookEntry& entry, const RunKeysOptions& options, const Registries& registries, ConfigNode* config,
             std::vector<ConfigProblem>* problems) {
  for (const auto& [key, ours] : options.run_keys()) {
    const ConfigNode* value = entry.kwargs.Find(key);
    if (value == nullptr) continue;
    SetRunKey(absl::StrCat(entry.path, ".kwargs.", key), *value, ours, registries, config, problems);
  }
}

}  // namespace

bool IsSet(const ConfigNode* value, const ConfigNode* by_default) {
  if (value == nullptr) return false;
  return !value->location().file.empty() || by_default == nullptr || !SameValue(*value, *by_default);
}

void SetRunKey(absl::string_view theirs, const ConfigNode& value, const std::string& ours, const Registries& registries,
               ConfigNode* config, std::vector<ConfigProblem>* problems) {
  if (AddWrongValues(theirs, value, ours, registries, problems)) return;
  const ConfigNode defaults = registries.options.Defaults();
  const ConfigNode* there = config->FindPath(ours);
  if (IsSet(there, defaults.FindPath(ours))) {
    if (SameValue(*there, value)) return;
    problems->push_back(
        {value.location(),
         absl::StrCat(theirs, " means config.", ours, ": ", value.text(), ", and ", there->location().ToString(),
                      " sets that to ", there->Describe(), "; expected one of the two, or the same in both")});
    return;
  }
  config->SetPath(ours, value);
}

absl::Status ResolveRunKeys(const Registries& registries, ConfigNode* config) {
  SSL_ASSIGN_OR_RETURN(const std::vector<HookEntry> entries, ReadHookEntries(*config));
  std::vector<ConfigProblem> problems;
  for (const HookEntry& entry : entries) {
    const auto component = registries.hook_components.find(entry.type);
    if (component == registries.hook_components.end()) continue;
    const std::unique_ptr<ComponentOptions> options = component->second.make_options();
    const auto* run_keys = dynamic_cast<const RunKeysOptions*>(options.get());
    if (run_keys != nullptr) SetEach(entry, *run_keys, registries, config, &problems);
  }
  return ProblemsInOrder(problems);
}

}  // namespace ssl
