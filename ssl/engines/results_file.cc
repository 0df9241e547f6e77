// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/results_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/surrogate_escape.h"
#include "ssl/config/yaml.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

using Json = nlohmann::ordered_json;

Json ScalarToJson(const ConfigNode& node) {
  if (!node.quoted()) {
    if (const auto value = node.AsInt(); value.ok()) return *value;
    if (const auto value = node.AsDouble(); value.ok()) return *value;
    if (const auto value = node.AsBool(); value.ok()) return *value;
  }
  return MarkBytes(node.text());
}

Json Convert(const ConfigNode& node) {
  if (node.is_null()) return nullptr;
  if (node.is_scalar()) return ScalarToJson(node);
  if (node.is_list()) {
    Json list = Json::array();
    for (const ConfigNode& item : node.items()) list.push_back(Convert(item));
    return list;
  }
  Json map = Json::object();
  for (const auto& [key, value] : node.entries()) map[MarkBytes(key)] = Convert(value);
  return map;
}

}  // namespace

std::string ToJson(const ConfigNode& node) { return absl::StrCat(EscapeMarks(Convert(node).dump(2)), "\n"); }

absl::StatusOr<ConfigNode> ReadResults(const std::string& path, FileSystem& file_system) {
  if (!file_system.Exists(path)) return ConfigNode::Map();
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(path));
  // JSON is a subset of YAML, whose parser keeps bytes as they are.
  SSL_ASSIGN_OR_RETURN(ConfigNode results, ParseYaml(UnmarkBytes(MarkEscapes(text)), path, nullptr));
  if (results.is_map()) return results;
  return absl::InvalidArgumentError(absl::StrCat(path, ": no JSON object"));
}

absl::Status WriteResults(const std::string& path, const ConfigNode& results, FileSystem& file_system) {
  return WriteFileAtomically(file_system, path, ToJson(results));
}

}  // namespace ssl
