// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/foreign_hook_entries.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"
#include "ssl/config/reader.h"
#include "ssl/config/writer.h"
#include "ssl/core/component.h"
#include "ssl/hooks/hook_aliases.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/run_keys.h"

namespace ssl {
namespace {

// Hosts register theirs when they like, so that this is known only now.
bool IsTheHosts(const HookAlias& alias, const Registries& registries) {
  return alias.name != alias.hook &&
         (registries.hooks.Has(alias.name) || registries.sink_components.count(alias.name) > 0);
}

const HookAlias* FindAlias(const std::string& name, const Registries& registries) {
  for (const HookAlias& alias : HookAliases()) {
    if (alias.name == name) return IsTheHosts(alias, registries) ? nullptr : &alias;
  }
  return nullptr;
}

// hook_conformance_test sees to it that each alias leads to one.
const Component& ComponentOf(const HookAlias& alias, const Registries& registries) {
  const auto hook = registries.hook_components.find(alias.hook);
  return hook != registries.hook_components.end() ? hook->second : registries.sink_components.at(alias.hook);
}

std::string OurName(const std::string& key, const HookAlias& alias) {
  const auto found = alias.keys.find(key);
  return found == alias.keys.end() ? key : found->second;
}

// Whoever knows the hook from there looks for that program's keys first.
std::string UnknownKey(const std::string& key, const HookEntry& entry, const HookAlias& alias,
                       const std::vector<std::string>& our_keys) {
  const auto without = alias.without.find(key);
  if (without != alias.without.end()) {
    return absl::StrCat(entry.path, ".kwargs.", key, " is a key of ", alias.program, "'s ", alias.name,
                        " that is none here. ", without->second);
  }
  std::vector<std::string> keys;
  for (const auto& [theirs, ours] : alias.keys) keys.push_back(theirs);
  keys.insert(keys.end(), our_keys.begin(), our_keys.end());
  std::string hint = DidYouMean(key, keys);
  if (hint.empty() && keys.empty()) hint = absl::StrCat("; ", entry.type, " has no options");
  if (hint.empty()) hint = absl::StrCat("; expected one of ", absl::StrJoin(keys, ", "));
  return absl::StrCat("unknown key '", entry.path, ".kwargs.", key, "'", hint);
}

// Whether the table has keys of theirs inside the map `key`.
bool IsNested(const std::string& key, const HookAlias& alias) {
  const auto is_inside = [&key](const auto& row) { return absl::StartsWith(row.first, absl::StrCat(key, ".")); };
  return std::any_of(alias.keys.begin(), alias.keys.end(), is_inside) ||
         std::any_of(alias.idle.begin(), alias.idle.end(), is_inside);
}

// The kwargs with nested keys of theirs as paths: "vis_gt.kwargs.vis_dir".
std::vector<ConfigNode::Entry> Flat(const ConfigNode& kwargs, const std::string& prefix, const HookAlias& alias) {
  std::vector<ConfigNode::Entry> flat;
  for (const auto& [key, value] : kwargs.entries()) {
    const std::string path = absl::StrCat(prefix, key);
    if (value.is_null() && IsNested(path, alias)) continue;  // as {}
    if (!value.is_map() || !IsNested(path, alias)) {
      flat.emplace_back(path, value);
      continue;
    }
    for (ConfigNode::Entry& inner : Flat(value, absl::StrCat(path, "."), alias)) flat.push_back(std::move(inner));
  }
  return flat;
}

void WarnOfIdle(const std::string& key, const ConfigNode& value, const HookEntry& entry, const HookAlias& alias) {
  SSL_LOG(WARNING) << value.location().ToString() << ": " << entry.path << ".kwargs." << key << " has no effect here. "
                   << alias.idle.at(key);
}

// The kwargs by our names; the unknown ones stay behind.
ConfigNode Renamed(const HookEntry& entry, const HookAlias& alias, const std::vector<std::string>& our_keys,
                   std::vector<ConfigProblem>* problems) {
  ConfigNode renamed = ConfigNode::Map(entry.kwargs.location());
  for (const auto& [key, value] : Flat(entry.kwargs, "", alias)) {
    if (alias.idle.count(key) > 0) {
      WarnOfIdle(key, value, entry, alias);
      continue;
    }
    const std::string name = OurName(key, alias);
    if (std::find(our_keys.begin(), our_keys.end(), name) == our_keys.end()) {
      problems->push_back({value.location(), UnknownKey(key, entry, alias, our_keys)});
    } else if (renamed.Find(name) != nullptr) {
      problems->push_back({value.location(), absl::StrCat(entry.path, ".kwargs.", key, " stands there twice, as ", name,
                                                          " and by its name in ", alias.program)});
    } else {
      renamed.Set(name, value);
    }
  }
  return renamed;
}

// `text` begins with the path of a key by our name.
std::string InTheirNames(const std::string& text, const HookEntry& entry, const HookAlias& alias) {
  for (const auto& [theirs, ours] : alias.keys) {
    absl::string_view rest = text;
    const bool is_it = absl::ConsumePrefix(&rest, absl::StrCat(entry.path, ".kwargs.", ours, " "));
    if (is_it && entry.kwargs.FindPath(theirs) != nullptr)
      return absl::StrCat(entry.path, ".kwargs.", theirs, " ", rest);
  }
  return text;
}

// The kwargs that the entry comes to. `options` are those of our hook, with defaults.
ConfigNode OurKwargs(const HookEntry& entry, const HookAlias& alias, const ConfigNode& config,
                     ComponentOptions* options, std::vector<ConfigProblem>* problems) {
  ComponentParameters parameters(options);
  ConfigNode kwargs = Renamed(entry, alias, KeysOf(parameters), problems);
  const ConfigNode by_default = WriteOptions(parameters);
  const bool has_section = entry.name.empty() || entry.name == alias.hook;
  const ConfigNode of_section = has_section ? ParametersIn(config, options) : ConfigNode::Map();
  for (const auto& [key, value] : alias.defaults) {
    if (kwargs.Find(key) != nullptr || IsSet(of_section.Find(key), by_default.Find(key))) continue;
    kwargs.Set(key, ConfigNode::Scalar(value, /*quoted=*/false, entry.kwargs.location()));
  }
  for (ConfigProblem& problem :
       ReadProblems(kwargs, absl::StrCat(entry.path, ".kwargs"), UnknownKeys::kError, &parameters)) {
    problem.text = InTheirNames(problem.text, entry, alias);
    problems->push_back(std::move(problem));
  }
  return kwargs;
}

}  // namespace

absl::Status ResolveForeignHookEntries(const Registries& registries, ConfigNode* config) {
  SSL_ASSIGN_OR_RETURN(const std::vector<HookEntry> entries, ReadHookEntries(*config));
  std::vector<ConfigProblem> problems;
  for (size_t i = 0; i < entries.size(); ++i) {
    const HookAlias* alias = FindAlias(entries[i].type, registries);
    if (alias == nullptr) continue;
    const std::unique_ptr<ComponentOptions> options = ComponentOf(*alias, registries).make_options();
    ConfigNode kwargs = OurKwargs(entries[i], *alias, *config, options.get(), &problems);
    const std::string path = absl::StrCat("hooks.", i);
    const SourceLocation place = config->FindPath(absl::StrCat(path, ".type"))->location();
    config->SetPath(absl::StrCat(path, ".type"), ConfigNode::Scalar(alias->hook, /*quoted=*/false, place));
    if (!kwargs.entries().empty()) config->SetPath(absl::StrCat(path, ".kwargs"), std::move(kwargs));
  }
  return ProblemsInOrder(problems);
}

}  // namespace ssl
