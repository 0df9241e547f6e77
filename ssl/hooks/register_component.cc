// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/register_component.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/help.h"

namespace ssl {
namespace {

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

std::string PathOfKey(absl::string_view key, const BuildContext& context) {
  if (context.key_paths == nullptr) return std::string(key);
  const auto path = context.key_paths->find(std::string(key));
  if (path != context.key_paths->end()) return path->second;
  const size_t dot = key.rfind('.');
  if (dot == absl::string_view::npos) return std::string(key);
  return absl::StrCat(PathOfKey(key.substr(0, dot), context), key.substr(dot));
}

std::string PlaceOf(const ConfigNode& params, absl::string_view key, const BuildContext& context) {
  const ConfigNode* node = params.FindPath(key);
  // A default stands nowhere: who has turned the component on can look.
  const bool is_default = node == nullptr || node->location().file.empty();
  return absl::StrCat((is_default ? params : *node).location().ToString(), ": ", PathOfKey(key, context));
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
