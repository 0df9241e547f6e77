// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/message_places.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/check/named_components.h"
#include "ssl/config/message_place.h"

namespace ssl {
namespace {

// "no trunk is named 'efficientnet'; known: ..." says a registry, which knows no keys.
std::string WithPlaceOfName(const std::string& line, const ConfigNode& root) {
  for (const NamedComponent& component : NamedComponents(root)) {
    const size_t at = line.find(absl::StrCat("no ", component.kind, " is named '", component.name, "'"));
    if (at == std::string::npos) continue;
    return absl::StrCat(component.location.ToString(), ": ", component.path, " is '", component.name,
                        "': ", line.substr(at));
  }
  return line;
}

}  // namespace

absl::Status WithPlaces(const absl::Status& status, const ConfigNode& root) {
  if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status) && !absl::IsUnimplemented(status)) return status;
  std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  for (std::string& line : lines) line = WithPlaceOfKey(WithPlaceOfName(line, root), root);
  absl::Status placed(status.code(), absl::StrJoin(lines, "\n"));
  status.ForEachPayload(
      [&placed](absl::string_view type, const absl::Cord& payload) { placed.SetPayload(type, payload); });
  return placed;
}

}  // namespace ssl
