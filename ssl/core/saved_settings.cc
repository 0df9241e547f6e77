// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/saved_settings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/help.h"
#include "ssl/core/precision.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

// How the maps of a list are told: a key's place in one means nothing, but older versions kept it.
enum class KeyOrder { kSorted, kAsWritten };

ConfigNode Canonical(const ConfigNode& node, KeyOrder order) {
  ConfigNode result = node;
  if (node.is_list()) {
    result = ConfigNode::List();
    for (const ConfigNode& item : node.items()) result.Append(Canonical(item, order));
  } else if (node.is_map()) {
    auto entries = node.entries();
    const auto by_key = [](const auto& left, const auto& right) { return left.first < right.first; };
    if (order == KeyOrder::kSorted) std::sort(entries.begin(), entries.end(), by_key);
    result = ConfigNode::Map();
    for (const auto& [key, value] : entries) result.Set(key, Canonical(value, order));
  } else if (const absl::StatusOr<int64_t> whole = node.AsInt(); whole.ok()) {
    result = ConfigNode::FromInt(*whole);
  } else if (const absl::StatusOr<double> number = node.AsDouble(); number.ok()) {
    result = ConfigNode::FromDouble(*number);
  } else if (const absl::StatusOr<bool> flag = node.AsBool(); flag.ok()) {
    result = ConfigNode::FromBool(*flag);
  }
  return result;
}

std::string TextOf(const ConfigNode& node) {
  const absl::StatusOr<JsonTree> read_back = ParseJson(WriteJson(JsonTree(FormatValue(node))));
  return read_back->text;
}

void Flatten(const ConfigNode& node, const std::string& path, SavedSettings* settings) {
  if (node.is_map() && !node.entries().empty()) {
    for (const auto& [key, value] : node.entries()) Flatten(value, JoinPath(path, key), settings);
    return;
  }
  (*settings)[path] = SettingText(node);
}

// `text` with `change` done to each path of a list, or to the one path that it is.
std::string WithEachPath(absl::string_view text, absl::FunctionRef<std::string(absl::string_view)> change) {
  constexpr absl::string_view kBetween[] = {"[", "]", ", "};
  constexpr absl::string_view kEmpty = "\"\"";
  std::string changed;
  while (!text.empty()) {
    size_t end = text.size();
    absl::string_view separator;
    for (const absl::string_view between : kBetween) {
      const size_t found = text.find(between);
      if (found >= end) continue;
      end = found;
      separator = between;
    }
    const absl::string_view path = text.substr(0, end);
    absl::StrAppend(&changed, path.empty() || path == kEmpty ? std::string(path) : change(path), separator);
    text.remove_prefix(end + separator.size());
  }
  return changed;
}

std::string NormalPath(absl::string_view path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(std::string(path), error);
  if (error) return std::string(path);
  const fs::path normal = fs::weakly_canonical(absolute, error);
  std::string text = (error ? absolute.lexically_normal() : normal).string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string ValueOf(const std::string& key, const ConfigNode& defaults, const SavedSettings& settings) {
  const auto value = settings.find(key);
  if (value != settings.end()) return value->second;
  const ConfigNode* by_default = defaults.FindPath(key);
  return by_default == nullptr ? "" : FormatValue(*by_default);
}

}  // namespace

std::string SettingText(const ConfigNode& value) { return TextOf(Canonical(value, KeyOrder::kSorted)); }

bool IsSavedAsWritten(const ConfigNode& value, absl::string_view text) {
  return TextOf(Canonical(value, KeyOrder::kAsWritten)) == text;
}

SavedSettings SettingsOf(const ConfigNode& config) {
  SavedSettings settings;
  Flatten(config, "", &settings);
  return settings;
}

SourceLocation PlaceInText(const ConfigNode& value, size_t offset) {
  std::vector<ConfigNode::Entry> children = value.entries();
  std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const ConfigNode& item : value.items()) children.emplace_back("", item);
  const std::string text = SettingText(value);
  size_t end = 0;
  for (const auto& [key, child] : children) {
    const std::string label = key.empty() ? "" : absl::StrCat(key, ": ");
    const std::string of_child = SettingText(child);
    const size_t begin = text.find(label + of_child, end);
    if (begin == std::string::npos || offset < begin) break;
    end = begin + label.size() + of_child.size();
    if (offset > end) continue;
    const SourceLocation place = PlaceInText(child, offset - std::min(offset, begin + label.size()));
    return place.file.empty() ? value.location() : place;
  }
  return value.location();
}

bool NamesPaths(absl::string_view key) {
  for (const absl::string_view end : {".DATA_PATHS", ".LABEL_PATHS", ".PATHS_BELOW", ".PARAMS_FILE"}) {
    if (absl::EndsWith(key, end)) return true;
  }
  return false;
}

std::string WithNormalPaths(absl::string_view text) { return WithEachPath(text, NormalPath); }

bool PathsAreGone(absl::string_view text) {
  namespace fs = std::filesystem;
  int64_t paths = 0;
  int64_t gone = 0;
  WithEachPath(text, [&](absl::string_view path) {
    std::error_code error;
    ++paths;
    gone += fs::status(std::string(path), error).type() == fs::file_type::not_found ? 1 : 0;
    return std::string(path);
  });
  return paths > 0 && gone == paths;
}

absl::StatusOr<SavedSettings> ParseSavedSettings(absl::string_view json, bool with_counts, absl::string_view origin) {
  const auto wrong = [origin](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("file ", origin, ": ", what));
  };
  const absl::StatusOr<JsonTree> root = ParseJson(json);
  if (!root.ok()) return wrong(root.status().message());
  const JsonTree* version = root->Find("format_version");
  if (version == nullptr || version->kind != JsonTree::Kind::kCount || version->count != kSettingsFormatVersion) {
    return wrong(
        absl::StrCat("format_version is not ", kSettingsFormatVersion, ": another version of the program wrote it"));
  }
  SavedSettings settings;
  for (const char* part : {"settings", "counts"}) {
    const JsonTree* values = root->Find(part);
    if (values == nullptr || values->kind != JsonTree::Kind::kObject) {
      return wrong(absl::StrCat(part, " is not an object"));
    }
    if (!with_counts && absl::string_view(part) == "counts") continue;
    for (const auto& [key, value] : values->object) {
      const bool is_text = value.kind == JsonTree::Kind::kString;
      if (!is_text && value.kind != JsonTree::Kind::kCount) return wrong(absl::StrCat(key, " is no text or number"));
      settings[key] = is_text ? value.text : absl::StrCat(value.count);
    }
  }
  return settings;
}

bool UsesAmpDtype(const ConfigNode& defaults, const SavedSettings& settings) {
  const bool is_float32 = ValueOf("MODEL.AMP_PARAMS.AMP_TYPE", defaults, settings) == "apex" &&
                          ValueOf("MODEL.AMP_PARAMS.AMP_ARGS.opt_level", defaults, settings) == "O0";
  return ValueOf("MODEL.AMP_PARAMS.USE_AMP", defaults, settings) == "true" && !is_float32;
}

void SettleAmpDtype(const ConfigNode& defaults, SavedSettings* settings) {
  if (!UsesAmpDtype(defaults, *settings)) return;
  if (ValueOf(kAmpDtype, defaults, *settings) != FormatValue(ConfigNode::FromString(""))) return;
  (*settings)[kAmpDtype] = DefaultAmpDtype(ValueOf("MACHINE.DEVICE", defaults, *settings));
}

std::string AmpDtypeHint(absl::string_view key, const ConfigNode& now, absl::string_view saved) {
  if (key != kAmpDtype || !now.text().empty()) return "";
  return absl::StrCat("; empty, it is what config.MACHINE.DEVICE makes it: set config.", kAmpDtype, "=", saved,
                      " to go on in the same format");
}

}  // namespace ssl
