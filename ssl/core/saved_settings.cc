// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/saved_settings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/utf8.h"
#include "ssl/config/help.h"
#include "ssl/core/precision.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

constexpr absl::string_view kReplaced = "\xEF\xBF\xBD";  // bytes that were no UTF-8

// How a value is told: exactly, or as older versions did, without quotes and, before that, with the keys of a map in
// the order of the file, which means nothing.
enum class Form { kExact, kWithoutQuotes, kAsWritten };

// Whether a text of YAML in brackets is another value, or none, without quotes.
bool NeedsQuotes(absl::string_view text) {
  constexpr absl::string_view kNowhere = "?,[]{}'\"`#";
  constexpr absl::string_view kNotFirst = " -:&*!|>%@~<";
  return text.empty() || text.find_first_of(kNowhere) != text.npos || absl::StrContains(kNotFirst, text.substr(0, 1)) ||
         absl::StrContains(text, ": ") || text.back() == ':' || text.back() == ' ' ||
         absl::EqualsIgnoreCase(text, "null") || std::any_of(text.begin(), text.end(), absl::ascii_iscntrl);
}

// `text` as it stands in that form; JSON's quotes and escapes are YAML's.
std::string Written(const std::string& text, Form form) {
  if (form != Form::kExact || !NeedsQuotes(text)) return text;
  return std::string(absl::StripSuffix(WriteJson(JsonTree(text)), "\n"));
}

ConfigNode Canonical(const ConfigNode& node, Form form) {
  ConfigNode result = node;
  if (node.is_list()) {
    result = ConfigNode::List();
    for (const ConfigNode& item : node.items()) result.Append(Canonical(item, form));
  } else if (node.is_map()) {
    auto entries = node.entries();
    const auto by_key = [](const auto& left, const auto& right) { return left.first < right.first; };
    if (form != Form::kAsWritten) std::sort(entries.begin(), entries.end(), by_key);
    result = ConfigNode::Map();
    for (const auto& [key, value] : entries) result.Set(Written(key, form), Canonical(value, form));
  } else if (const absl::StatusOr<int64_t> whole = node.AsInt(); whole.ok()) {
    result = ConfigNode::FromInt(*whole);
  } else if (const absl::StatusOr<double> number = node.AsDouble(); number.ok()) {
    result = ConfigNode::FromDouble(*number);
  } else if (const absl::StatusOr<bool> flag = node.AsBool(); flag.ok()) {
    result = ConfigNode::FromBool(*flag);
  } else if (node.is_scalar()) {
    result = ConfigNode::Scalar(Written(node.text(), form));
  }
  return result;
}

std::string TextOf(const ConfigNode& node, Form form) {
  const absl::StatusOr<JsonTree> read_back = ParseJson(WriteJson(JsonTree(FormatValue(Canonical(node, form)))));
  return read_back->text;
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

// The places of a path, or of a list of them. JSON holds UTF-8 alone: other names have escapes, and so have those that
// would look like one.
JsonTree PlacesOf(const ConfigNode& node) {
  if (!node.is_list()) {
    const std::string path = node.text().empty() ? "" : NormalPath(node.text());
    return JsonTree(IsUtf8(path) && !absl::StrContains(path, '\\') ? path : absl::CEscape(path));
  }
  JsonTree::List places;
  for (const ConfigNode& item : node.items()) places.push_back(PlacesOf(item));
  return JsonTree(std::move(places));
}

// Those of a list, and of the lists in it, that are not empty.
void AppendPlaces(const JsonTree& tree, std::vector<std::string>* places) {
  if (!tree.text.empty()) places->push_back(tree.text);
  for (const JsonTree& item : tree.list) AppendPlaces(item, places);
}

// Those of a setting, where this version saved it.
std::vector<std::string> RecordedPlaces(const SavedSettings& settings, const std::string& key) {
  std::vector<std::string> places;
  const auto recorded = settings.find(absl::StrCat(key, kPlaces));
  if (recorded == settings.end()) return places;
  const absl::StatusOr<JsonTree> tree = ParseJson(recorded->second);
  if (tree.ok()) AppendPlaces(*tree, &places);
  return places;
}

// The paths of a text that an older version saved, without quotes; none where it does not tell them.
std::vector<std::string> PathsOfText(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "[") != absl::ConsumeSuffix(&text, "]")) return {};
  if (text.empty() || text.find_first_of("[]{}'\"") != text.npos || absl::StrContains(text, kReplaced)) return {};
  return absl::StrSplit(text, ", ");
}

// Nothing is at `path`. Of a pattern such as train-{000..146}.tar: no file that begins like it.
bool IsGone(const std::string& path) {
  namespace fs = std::filesystem;
  const auto is_missing = [](const fs::path& place) {
    std::error_code error;
    return fs::status(place, error).type() == fs::file_type::not_found;
  };
  const fs::path begin = path.substr(0, path.find('{'));
  if (begin == path || !is_missing(path) || is_missing(begin.parent_path())) return is_missing(path);
  std::error_code error;
  fs::directory_iterator entry(begin.parent_path(), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (absl::StartsWith(entry->path().filename().string(), begin.filename().string())) return false;
  }
  return !error;
}

void Flatten(const ConfigNode& node, const std::string& path, SavedSettings* settings) {
  if (node.is_map() && !node.entries().empty()) {
    for (const auto& [key, value] : node.entries()) Flatten(value, JoinPath(path, key), settings);
    return;
  }
  (*settings)[path] = SettingText(node);
  if (NamesPaths(path)) (*settings)[absl::StrCat(path, kPlaces)] = WriteJson(PlacesOf(node));
}

std::string ValueOf(const std::string& key, const ConfigNode& defaults, const SavedSettings& settings) {
  const auto value = settings.find(key);
  if (value != settings.end()) return value->second;
  const ConfigNode* by_default = defaults.FindPath(key);
  return by_default == nullptr ? "" : FormatValue(*by_default);
}

}  // namespace

std::string SettingText(const ConfigNode& value) { return TextOf(value, Form::kExact); }

bool IsSavedAsWritten(const ConfigNode& value, absl::string_view text) {
  return TextOf(value, Form::kWithoutQuotes) == text || TextOf(value, Form::kAsWritten) == text;
}

absl::StatusOr<ConfigNode> NodeOfSaved(absl::string_view text,
                                       absl::FunctionRef<absl::StatusOr<ConfigNode>(absl::string_view)> parse) {
  SSL_ASSIGN_OR_RETURN(const ConfigNode list, parse(absl::StrCat("[", text, "]")));
  const bool is_one = list.items().size() == 1 && !absl::StrContains(text, kReplaced);
  if (is_one && (SettingText(list.items()[0]) == text || IsSavedAsWritten(list.items()[0], text))) {
    return list.items()[0];
  }
  return absl::InvalidArgumentError(absl::StrCat("the saved text '", text, "' does not tell its value"));
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
    const std::string label = key.empty() ? "" : absl::StrCat(Written(key, Form::kExact), ": ");
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

std::string WithNormalPaths(absl::string_view text) {
  std::vector<std::string> paths = PathsOfText(text);
  if (paths.empty()) return std::string(text);
  for (std::string& path : paths) path = NormalPath(path);
  const std::string joined = absl::StrJoin(paths, ", ");
  return absl::StartsWith(text, "[") ? absl::StrCat("[", joined, "]") : joined;
}

bool NamesSamePlaces(const SavedSettings& saved, const std::string& key, const ConfigNode& now) {
  const auto recorded = saved.find(absl::StrCat(key, kPlaces));
  if (recorded != saved.end()) return recorded->second == WriteJson(PlacesOf(now));
  const auto text = saved.find(key);
  if (text == saved.end()) return false;
  return IsSavedAsWritten(now, text->second) ||
         WithNormalPaths(text->second) == WithNormalPaths(TextOf(now, Form::kWithoutQuotes));
}

bool PlacesAreGone(const SavedSettings& saved, const std::string& key) {
  const bool are_recorded = saved.count(absl::StrCat(key, kPlaces)) > 0;
  const auto text = saved.find(key);
  std::vector<std::string> places = RecordedPlaces(saved, key);
  if (!are_recorded && text != saved.end()) places = PathsOfText(text->second);
  const auto is_gone = [are_recorded](const std::string& place) {
    std::string path = place;
    return absl::StartsWith(place, "/") && (!are_recorded || absl::CUnescape(place, &path)) && IsGone(path);
  };
  return !places.empty() && std::all_of(places.begin(), places.end(), is_gone);
}

std::string PlacesForMessage(const SavedSettings& settings, const std::string& key) {
  return absl::StrCat("[", absl::StrJoin(RecordedPlaces(settings, key), ", "), "]");
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
  for (const absl::string_view part : {"settings", "counts", "places"}) {
    const JsonTree* values = root->Find(part);
    if (part == "places" && values == nullptr) continue;  // an older version
    if (values == nullptr || values->kind != JsonTree::Kind::kObject) {
      return wrong(absl::StrCat(part, " is not an object"));
    }
    if (!with_counts && part == "counts") continue;
    for (const auto& [key, value] : values->object) {
      if (part == "places") {
        settings[absl::StrCat(key, kPlaces)] = WriteJson(value);
        continue;
      }
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
