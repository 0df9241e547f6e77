// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/register_component.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/help.h"

namespace ssl {
namespace {

// The map that parameters were read from.
struct Origin {
  std::string path;
  int num_shared = 0;  // values that it has from the same place
};

// Whether `map` holds the very value that `params` has for the key: an equal one may stand elsewhere.
bool HasThatOf(const ConfigNode& params, const ConfigNode& map, absl::string_view key) {
  const ConfigNode* theirs = params.Find(key);
  const ConfigNode* own = map.Find(key);
  return theirs != nullptr && own != nullptr && theirs->location().file == own->location().file &&
         theirs->location().line == own->location().line && *theirs == *own;
}

// A parameter has forgotten where it stood but for file and line: the map at `node` or below that shares most with
// `params`, and has their value of `key` when they have one.
void FindOrigin(const ConfigNode& node, const std::string& path, const ConfigNode& params, absl::string_view key,
                Origin* best) {
  if (node.is_list()) {
    for (size_t i = 0; i < node.items().size(); ++i) {
      FindOrigin(node.items()[i], JoinPath(path, absl::StrCat(i)), params, key, best);
    }
  }
  if (!node.is_map()) return;
  int num_shared = 0;
  for (const auto& [name, value] : params.entries()) num_shared += HasThatOf(params, node, name) ? 1 : 0;
  const bool may_be = params.Find(key) == nullptr || HasThatOf(params, node, key);
  if (may_be && num_shared > best->num_shared) *best = {path, num_shared};
  for (const auto& [name, value] : node.entries()) FindOrigin(value, JoinPath(path, name), params, key, best);
}

void CopyDeclared(const ConfigNode& node, Options& options, ConfigNode* params) {
  for (const HelpRow& row : HelpRows("", options)) {
    const ConfigNode* value = row.type == kSectionType ? nullptr : node.FindPath(row.key);
    if (value != nullptr) params->SetPath(row.key, *value);
  }
}

}  // namespace

void ComponentParameters::VisitFields(FieldVisitor& visitor) {
  options_->VisitFields(visitor);
  for (const SharedOptions& shared : options_->shared()) shared.options->VisitFields(visitor);
}

std::vector<std::string> KeysOf(Options& options) {
  std::vector<std::string> keys;
  for (const HelpRow& row : HelpRows("", options)) {
    if (!absl::StrContains(row.key, '.')) keys.push_back(row.key);
  }
  return keys;
}

ConfigNode ParametersIn(const ConfigNode& config, ComponentOptions* options) {
  ConfigNode parameters = ConfigNode::Map();
  if (options->section() != kHookList) {
    const ConfigNode& section = config.Section(options->section());
    parameters = ConfigNode::Map(section.location());
    CopyDeclared(section, *options, &parameters);
  }
  for (const SharedOptions& shared : options->shared()) {
    CopyDeclared(config.Section(shared.section), *shared.options, &parameters);
  }
  return parameters;
}

absl::StatusOr<std::string> PathInRun(const BuildContext& context, absl::string_view what, absl::string_view file) {
  if (context.run_directory.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " has no place to write ", file, " to, expected a run directory"));
  }
  return absl::StrCat(context.run_directory, "/", file);
}

absl::StatusOr<std::string> PathOfSink(const BuildContext& context, absl::string_view sink, absl::string_view file) {
  return PathInRun(context, absl::StrCat("metric sink '", sink, "'"), file);
}

std::string PlaceOf(const ConfigNode& params, absl::string_view key, const BuildContext& context) {
  const ConfigNode* node = params.Find(key);
  const std::string place = absl::StrCat((node == nullptr ? params : *node).location().ToString(), ": ");
  Origin origin;
  FindOrigin(context.config, "config", params, key, &origin);
  return absl::StrCat(place, origin.num_shared > 0 ? JoinPath(origin.path, key) : std::string(key));
}

namespace register_component_internal {

absl::Status Add(Component component, std::map<std::string, Component>* components, OptionCatalog* catalog) {
  const std::unique_ptr<ComponentOptions> options = component.make_options();
  if (options->section() != kHookList && !KeysOf(*options).empty()) {
    SSL_RETURN_IF_ERROR(catalog->Add(std::string(options->section()), component.make_options));
  }
  const std::string name = component.name;
  components->emplace(name, std::move(component));
  return absl::OkStatus();
}

}  // namespace register_component_internal
}  // namespace ssl
