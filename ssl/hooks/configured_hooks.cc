// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/configured_hooks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/help.h"
#include "ssl/config/lists_in_full.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/reader.h"
#include "ssl/core/component.h"
#include "ssl/core/run_preview.h"
#include "ssl/hooks/hook_aliases.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

// A component that runs.
struct Choice {
  std::string type;
  std::string instance;
  int rank = 0;
  ConfigNode params;
  std::map<std::string, std::string> key_paths = {};  // BuildContext::key_paths
};

std::string PathOf(absl::string_view section) { return section.empty() ? "config" : absl::StrCat("config.", section); }

absl::Status ReadSection(const ConfigNode& config, absl::string_view section, Options* options) {
  const ConfigNode* node = config.FindPath(section);
  if (node == nullptr) return absl::OkStatus();
  return ReadOptions(*node, PathOf(section), UnknownKeys::kIgnore, options);
}

// Reads the values of `config` and returns those that stand there, as parameters.
absl::StatusOr<ConfigNode> ReadComponent(const ConfigNode& config, ComponentOptions* options) {
  if (options->section() != kHookList) SSL_RETURN_IF_ERROR(ReadSection(config, options->section(), options));
  for (const SharedOptions& shared : options->shared()) {
    SSL_RETURN_IF_ERROR(ReadSection(config, shared.section, shared.options));
  }
  return ParametersIn(config, options);
}

void AddKeyPaths(const std::string& path, const std::vector<std::string>& keys, Choice* choice) {
  for (const std::string& key : keys) choice->key_paths[key] = absl::StrCat(path, ".", key);
}

// Those of a component that no entry of the list configures.
void AddSectionPaths(ComponentOptions& options, Choice* choice) {
  if (options.section() != kHookList) AddKeyPaths(PathOf(options.section()), KeysOf(options), choice);
  for (const SharedOptions& shared : options.shared()) {
    AddKeyPaths(PathOf(shared.section), KeysOf(*shared.options), choice);
  }
}

std::vector<std::string> KeysIn(const ConfigNode& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map.entries()) keys.push_back(key);
  return keys;
}

// A key that stands nowhere is one that the entry lacks, unless it has a section.
void AddEntryPaths(const HookEntry& entry, ComponentOptions* options, Choice* choice) {
  const std::string kwargs = absl::StrCat(entry.path, ".kwargs");
  ComponentParameters parameters(options);
  AddKeyPaths(kwargs, KeysOf(parameters), choice);
  if (choice->instance == choice->type) AddSectionPaths(*options, choice);
  AddKeyPaths(kwargs, KeysIn(entry.kwargs), choice);
}

absl::StatusOr<std::vector<Choice>> ChooseBySections(const std::map<std::string, Component>& components,
                                                     const ConfigNode& config) {
  std::vector<Choice> choices;
  for (const auto& [name, component] : components) {
    const std::unique_ptr<ComponentOptions> options = component.make_options();
    SSL_ASSIGN_OR_RETURN(ConfigNode params, ReadComponent(config, options.get()));
    if (!options->enabled()) continue;
    choices.push_back({name, name, component.rank, std::move(params)});
    AddSectionPaths(*options, &choices.back());
  }
  return choices;
}

absl::Status WrongName(const HookEntry& entry, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(entry.kwargs.location().ToString(), ": ", entry.path, ".name is '", entry.name, "', ", what));
}

// Not for a type that the host has registered.
absl::Status CheckIsNotElsewhere(const HookEntry& entry, const Registries& registries) {
  if (registries.hooks.Has(entry.type)) return absl::OkStatus();
  for (const HookElsewhere& other : HooksElsewhere()) {
    if (other.name != entry.type) continue;
    return absl::InvalidArgumentError(absl::StrCat(entry.kwargs.location().ToString(), ": ", entry.path, ".type is '",
                                                   other.name, "', a hook of ", other.program, " that is none here. ",
                                                   other.instead));
  }
  return absl::OkStatus();
}

// " (elsewhere EmaHook)", for those who have written that.
std::string NamesElsewhere(const std::string& hook) {
  std::set<std::string> names;
  for (const HookAlias& alias : HookAliases()) {
    if (alias.hook == hook && alias.name != hook) names.insert(alias.name);
  }
  return names.empty() ? "" : absl::StrCat(" (elsewhere ", absl::StrJoin(names, ", "), ")");
}

// Two entries of a hook of which a run has one are one entry in two parts, whatever their names.
absl::Status CheckOncePerRun(const std::vector<HookEntry>& entries,
                             const std::map<std::string, Component>& components) {
  std::map<std::string, const HookEntry*> firsts;
  for (const HookEntry& entry : entries) {
    const auto component = components.find(entry.type);
    if (component == components.end() || !IsOncePerRun(*component->second.make_options())) continue;
    const auto [first, is_new] = firsts.emplace(entry.type, &entry);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        entry.kwargs.location().ToString(), ": ", entry.path, " is a second ", entry.type, NamesElsewhere(entry.type),
        " beside ", first->second->path, " (", first->second->kwargs.location().ToString(),
        "), of which a run has one, expected one entry with the kwargs of both"));
  }
  return absl::OkStatus();
}

// Whether the hook is on with `value` for `key`, "A.B" for one of a nested section, alone; nullopt where the key takes
// no such value.
std::optional<bool> IsOnWith(const std::string& key, bool value, const Component& component) {
  const std::unique_ptr<ComponentOptions> options = component.make_options();
  ConfigNode params = ConfigNode::Map();
  params.SetPath(key, ConfigNode::FromBool(value));
  if (!ReadOptions(params, "", UnknownKeys::kError, options.get()).ok()) return std::nullopt;
  return options->enabled();
}

// `options`: of the entry. One that turns its hook off says two things at once.
absl::Status CheckIsOn(const HookEntry& entry, const Component& component, const ComponentOptions& options) {
  if (options.enabled()) return absl::OkStatus();
  for (const HelpRow& row : HelpRows("", *component.make_options())) {
    const std::string& key = row.key;
    if (IsOnWith(key, true, component) != true || IsOnWith(key, false, component) != false) continue;
    const ConfigNode* value = entry.kwargs.FindPath(key);
    if (value == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(value->location().ToString(), ": ", entry.path, ".kwargs.", key,
                                                   " is false, but an entry of the list turns its hook on; expected no "
                                                   "entry, and that value in the section ",
                                                   options.section().empty() ? "config" : options.section()));
  }
  return absl::OkStatus();
}

// kwargs in place of the values of the hook's section; of its defaults, when the instance has a name of its own.
absl::StatusOr<Choice> ChooseByEntry(const HookEntry& entry, const std::map<std::string, Component>& components,
                                     const BuildContext& context) {
  Choice choice{entry.type, entry.name.empty() ? entry.type : entry.name, 0, entry.kwargs};
  const auto component = components.find(entry.type);
  if (component == components.end()) {
    AddKeyPaths(absl::StrCat(entry.path, ".kwargs"), KeysIn(entry.kwargs), &choice);
    SSL_RETURN_IF_ERROR(CheckIsNotElsewhere(entry, context.registries));
    return choice;  // of the host's, or unknown: its factory tells
  }
  choice.rank = component->second.rank;
  const std::unique_ptr<ComponentOptions> options = component->second.make_options();
  if (choice.instance != entry.type && IsOncePerRun(*options)) {
    return WrongName(entry, absl::StrCat("which would be a second ", entry.type,
                                         ", of which a run has one, expected no name: kwargs then configure that one"));
  }
  ComponentParameters parameters(options.get());
  SSL_RETURN_IF_ERROR(ReadOptions(entry.kwargs, absl::StrCat(entry.path, ".kwargs"), UnknownKeys::kError, &parameters));
  SSL_RETURN_IF_ERROR(CheckIsOn(entry, component->second, *options));
  AddEntryPaths(entry, options.get(), &choice);
  if (choice.instance != entry.type) return choice;
  SSL_ASSIGN_OR_RETURN(const ConfigNode of_section, ReadComponent(context.config, options.get()));
  choice.params = ConfigNode::Map(entry.kwargs.location());
  MergeInto(&choice.params, of_section);
  MergeInto(&choice.params, entry.kwargs);
  return choice;
}

enum class ComponentKind { kHook, kSink };

// What the entries of the list choose of one kind; a type that no sink has is a hook's, known or not.
absl::Status AddEntries(const BuildContext& context, ComponentKind kind, std::vector<Choice>* choices) {
  const Registries& registries = context.registries;
  const auto& components = kind == ComponentKind::kSink ? registries.sink_components : registries.hook_components;
  SSL_ASSIGN_OR_RETURN(const std::vector<HookEntry> entries, ReadHookEntries(context.config));
  SSL_RETURN_IF_ERROR(CheckOncePerRun(entries, components));
  std::map<std::string, std::string> paths;  // of the instances that the list names
  for (const HookEntry& entry : entries) {
    const bool is_sink = registries.sink_components.count(entry.type) > 0;
    if (is_sink != (kind == ComponentKind::kSink)) continue;
    const std::vector<std::string>& taken = context.hook_names;
    const bool is_taken = std::find(taken.begin(), taken.end(), entry.name) != taken.end();
    if (is_taken || (entry.name != entry.type && context.registries.hooks.Has(entry.name))) {
      return WrongName(entry, "the name of another hook, whose place it would take; expected a name that no hook has");
    }
    SSL_ASSIGN_OR_RETURN(Choice choice, ChooseByEntry(entry, components, context));
    const auto [path, is_new] = paths.emplace(choice.instance, entry.path);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(entry.kwargs.location().ToString(), ": ", entry.path,
                                                     " is a second hook '", choice.instance, "' beside ", path->second,
                                                     ", expected another `name` for one of them"));
    }
    const auto same = [&choice](const Choice& other) { return other.instance == choice.instance; };
    const auto found = std::find_if(choices->begin(), choices->end(), same);
    if (found == choices->end()) {
      choices->push_back(std::move(choice));
    } else {
      *found = std::move(choice);
    }
  }
  return absl::OkStatus();
}

// Two hooks that name checkpoints alike would take the name from one another.
absl::Status CheckNamesOfCheckpoints(const std::vector<std::unique_ptr<Hook>>& hooks) {
  std::map<std::string, std::string> owners;
  for (const std::unique_ptr<Hook>& hook : hooks) {
    for (const PlannedAction& action : hook->Plan()) {
      if (!absl::EndsWith(action.file, kCheckpointNameSuffix)) continue;
      const auto [owner, is_new] = owners.emplace(action.file, hook->instance_name());
      if (is_new || owner->second == hook->instance_name()) continue;
      return absl::InvalidArgumentError(absl::StrCat("hooks '", owner->second, "' and '", hook->instance_name(),
                                                     "' would both keep ", action.file,
                                                     "; give the entry of config.hooks another name"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Choice>> ChooseSinks(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(std::vector<Choice> choices,
                       ChooseBySections(context.registries.sink_components, context.config));
  SSL_RETURN_IF_ERROR(AddEntries(context, ComponentKind::kSink, &choices));
  return choices;
}

void WriteSectionInFull(const Component& component, ConfigNode* config) {
  const std::unique_ptr<ComponentOptions> options = component.make_options();
  if (options->section() == kHookList) return;
  ConfigNode* map = config;
  for (absl::string_view part : absl::StrSplit(options->section(), '.', absl::SkipEmpty())) {
    map = map == nullptr ? nullptr : map->FindMutable(part);
  }
  if (map != nullptr) WriteListsInFull(*options, map);
}

// Of a hook or a sink; nullptr for a type of the host's own, or one that nobody has.
const Component* FindComponent(const std::string& type, const Registries& registries) {
  for (const auto* components : {&registries.hook_components, &registries.sink_components}) {
    const auto found = components->find(type);
    if (found != components->end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

absl::Status WriteListsOfHooksInFull(const Registries& registries, ConfigNode* config) {
  for (const auto* components : {&registries.hook_components, &registries.sink_components}) {
    for (const auto& [name, component] : *components) WriteSectionInFull(component, config);
  }
  SSL_ASSIGN_OR_RETURN(std::vector<HookEntry> entries, ReadHookEntries(*config));
  for (size_t i = 0; i < entries.size(); ++i) {
    const Component* component = FindComponent(entries[i].type, registries);
    if (component == nullptr || entries[i].kwargs.entries().empty()) continue;
    const std::unique_ptr<ComponentOptions> options = component->make_options();
    ComponentParameters parameters(options.get());
    WriteListsInFull(parameters, &entries[i].kwargs);
    config->SetPath(absl::StrCat("hooks.", i, ".kwargs"), std::move(entries[i].kwargs));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeConfiguredHooks(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(std::vector<Choice> choices,
                       ChooseBySections(context.registries.hook_components, context.config));
  SSL_RETURN_IF_ERROR(AddEntries(context, ComponentKind::kHook, &choices));
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& left, const Choice& right) { return left.rank < right.rank; });
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const Choice& choice : choices) {
    BuildContext with_paths = context;
    with_paths.key_paths = &choice.key_paths;
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Hook> hook,
                         context.registries.hooks.Make(choice.type, choice.params, with_paths));
    if (choice.instance != choice.type) hook->set_instance_name(choice.instance);
    hooks.push_back(std::move(hook));
  }
  std::stable_sort(hooks.begin(), hooks.end(),
                   [](const auto& left, const auto& right) { return left->stage() < right->stage(); });
  SSL_RETURN_IF_ERROR(CheckNamesOfCheckpoints(hooks));
  return hooks;
}

absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> MakeConfiguredSinks(const BuildContext& context) {
  std::vector<std::unique_ptr<MetricSink>> sinks;
  SSL_ASSIGN_OR_RETURN(const std::vector<Choice> choices, ChooseSinks(context));
  if (context.run_directory.empty()) return sinks;
  for (const Choice& choice : choices) {
    BuildContext with_paths = context;
    with_paths.key_paths = &choice.key_paths;
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<MetricSink> sink,
                         context.registries.metric_sinks.Make(choice.type, choice.params, with_paths));
    sinks.push_back(std::move(sink));
  }
  return sinks;
}

absl::StatusOr<std::vector<std::string>> FilesOfConfiguredSinks(const BuildContext& context) {
  std::vector<std::string> files;
  SSL_ASSIGN_OR_RETURN(const std::vector<Choice> choices, ChooseSinks(context));
  for (const Choice& choice : choices) {
    const std::unique_ptr<ComponentOptions> options = context.registries.sink_components.at(choice.type).make_options();
    ComponentParameters parameters(options.get());
    SSL_RETURN_IF_ERROR(ReadOptions(choice.params, choice.type, UnknownKeys::kError, &parameters));
    for (std::string& file : options->leaves()) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace ssl
