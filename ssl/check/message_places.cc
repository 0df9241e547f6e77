// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/message_places.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/check/named_components.h"
#include "ssl/config/message_place.h"

namespace ssl {
namespace {

// "no trunk is named 'efficientnet'; known: ..." says a registry, which knows no keys.
std::string WithPlaceOfName(const std::string& line, const std::vector<NamedComponent>& components) {
  for (const NamedComponent& component : components) {
    const size_t at = line.find(absl::StrCat("no ", component.kind, " is named '", component.name, "'"));
    if (at == std::string::npos) continue;
    return absl::StrCat(component.location.ToString(), ": ", component.path, " is '", component.name,
                        "': ", line.substr(at));
  }
  return line;
}

// The parameters of a component: how it begins their keys in messages, and where they are.
struct Parameters {
  std::string begin;  // "TRANSFORMS.Normalize."
  std::string path;   // "config.DATA.TRAIN.TRANSFORMS.2"
};

Parameters ParametersOf(const NamedComponent& component) {
  const std::string path = component.path.substr(0, component.path.rfind('.'));
  if (component.kind == "transform") return {absl::StrCat("TRANSFORMS.", component.name, "."), path};
  if (component.kind == "head") return {absl::StrCat(component.name, "."), JoinPath(path, "1")};
  return component.kind == "schedule" ? Parameters{"param_schedulers.", path} : Parameters{};
}

// "f.yaml:3: unknown key 'TRANSFORMS.Normalize.sdt'" becomes "f.yaml:3: Normalize: unknown key
// 'config.DATA.TRAIN.TRANSFORMS.2.sdt'": an entry of a list does not know where it stands in it.
std::string WithWholeKey(const std::string& line, const std::vector<NamedComponent>& components,
                         const ConfigNode& root) {
  constexpr absl::string_view kUnknown = "unknown key '";
  std::string whole;
  for (const NamedComponent& component : components) {
    const auto& [begin, path] = ParametersOf(component);
    const size_t at = begin.empty() ? line.npos : line.find(begin);
    if (at == line.npos) continue;
    absl::string_view before = absl::string_view(line).substr(0, at);
    const std::string rest = line.substr(at + begin.size());
    const bool is_unknown = absl::ConsumeSuffix(&before, kUnknown);
    const ConfigNode* value = root.FindPath(JoinPath(path, rest.substr(0, rest.find_first_of(" ',:;"))));
    if (value == nullptr) continue;
    const std::string place = absl::StrCat(value->location().ToString(), ": ");
    if (!absl::ConsumeSuffix(&before, place)) continue;
    absl::ConsumeSuffix(&before, absl::StrCat(root.FindPath(path)->location().ToString(), ": ", path, ": "));
    // The value of any of several entries in one line: the line stays as it is, unless it quotes the value.
    const bool is_told = is_unknown || absl::StrContains(rest, absl::StrCat(" is ", value->Describe(), ","));
    const std::string named =
        absl::StrCat(before, place, component.name, ": ", is_unknown ? kUnknown : "", JoinPath(path, rest));
    if (is_told) return named;
    if (!whole.empty() && whole != named) return line;
    whole = named;
  }
  return whole.empty() ? line : whole;
}

}  // namespace

absl::Status WithPlaces(const absl::Status& status, const ConfigNode& root) {
  if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status) && !absl::IsUnimplemented(status)) return status;
  std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  const std::vector<NamedComponent> components = NamedComponents(root);
  for (std::string& line : lines) {
    line = WithPlaceOfKey(WithWholeKey(WithPlaceOfName(line, components), components, root), root);
  }
  absl::Status placed(status.code(), absl::StrJoin(lines, "\n"));
  status.ForEachPayload(
      [&placed](absl::string_view type, const absl::Cord& payload) { placed.SetPayload(type, payload); });
  return placed;
}

}  // namespace ssl
