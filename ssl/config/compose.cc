// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/compose.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/config/find_file.h"
#include "ssl/config/key_check.h"
#include "ssl/config/merge.h"
#include "ssl/config/same_value.h"
#include "ssl/config/unexpanded_text.h"
#include "ssl/config/yaml.h"

namespace ssl {
namespace {

constexpr char kCommandLine[] = "command line";
constexpr char kAllowUnknownKeys[] = "config.ALLOW_UNKNOWN_KEYS";
// With the depth of a value this stays far from any limit of the stack.
constexpr size_t kMaxKeyParts = 32;

// "+config.A.B=value", taken apart.
struct Override {
  int position = 0;  // From 1.
  bool is_addition = false;
  std::string key;
  std::string value;
};

bool IsFileKey(absl::string_view key) { return key == "config" || absl::StartsWith(key, "config/"); }

bool IsHydraKey(absl::string_view key) { return absl::StartsWith(key, "hydra.") || absl::StartsWith(key, "hydra/"); }

// At most one byte more than ParseYaml accepts, whatever the file's size.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(static_cast<size_t>(kMaxYamlBytes) + 1, '\0');
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && !stream.eof()) {
    return absl::UnavailableError(absl::StrCat(path, ": config file cannot be read: ", std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

std::vector<std::string> NonEmptyParts(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return parts;
}

bool IsNullText(absl::string_view text) { return text == "null" || text == "Null" || text == "NULL" || text == "~"; }

absl::StatusOr<ConfigNode> ParseValue(const Override& token, std::vector<std::string>* repeated_keys) {
  const SourceLocation location{kCommandLine, token.position};
  const std::string& text = token.value;
  if (IsNullText(text)) return ConfigNode::Null(location);
  if (text.empty() || !absl::StrContains("[{\"'", text.substr(0, 1))) {
    return ConfigNode::Scalar(text, /*quoted=*/text.empty(), location);
  }
  absl::StatusOr<ConfigNode> value =
      ParseYaml(text, absl::StrCat(kCommandLine, ": value of ", token.key), repeated_keys);
  if (value.ok()) value->Relocate(location);
  return value;
}

// In a message about a key that cannot be there.
std::string DescribeKeys(const ConfigNode& node) {
  if (!node.is_list() || node.items().empty()) return node.Describe();
  return absl::StrCat("a list with entries 0 to ", node.items().size() - 1);
}

// Null in the place of a section means that nothing is set there. Any other value there has
// been reported; without it the keys of the section stay known to the checks that follow.
void RestoreSections(const ConfigNode& defaults, ConfigNode* node) {
  if (!IsSection(defaults)) return;
  if (!node->is_map()) *node = defaults;
  for (const auto& [key, value] : defaults.entries()) {
    if (ConfigNode* child = node->FindMutable(key)) RestoreSections(value, child);
  }
}

// Settings of hydra itself, which VISSL's root file has beside `config`.
void DropHydra(ConfigNode* file, std::vector<std::string>* warnings) {
  const ConfigNode* hydra = file->Find("hydra");
  if (hydra == nullptr) return;
  warnings->push_back(absl::StrCat(hydra->location().ToString(), ": 'hydra' has no effect here"));
  std::vector<ConfigNode::Entry>& entries = *file->mutable_entries();
  const auto is_hydra = [](const ConfigNode::Entry& entry) { return entry.first == "hydra"; };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_hydra), entries.end());
}

class Composer {
 public:
  explicit Composer(const ComposeRequest& request) : request_(request) { result_.root = request.defaults; }

  ComposedConfig Run(std::vector<std::string>* problems) {
    SplitTokens();
    for (const Override& token : files_) MergeFile(token);
    RestoreSections(request_.defaults, &result_.root);
    Append(unknown_keys_, AllowsUnknownKeys() ? &result_.warnings : &problems_);
    for (const Override& token : values_) SetValue(token);
    RestoreSections(request_.defaults, &result_.root);
    std::vector<ConfigProblem> unexpanded;
    FindUnexpanded(result_.root, "", &unexpanded);
    for (const ConfigProblem& problem : SortedProblems(std::move(unexpanded))) Add(problem.ToString());
    Append(problems_, problems);
    return std::move(result_);
  }

 private:
  void SplitTokens() {
    bool has_base = false;
    for (size_t i = 0; i < request_.tokens.size(); ++i) {
      absl::string_view text = request_.tokens[i];
      Override token;
      token.position = static_cast<int>(i) + 1;
      token.is_addition = absl::ConsumePrefix(&text, "+");
      const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
      token.key = std::string(sides.first);
      token.value = std::string(sides.second);
      if (token.key.empty() || !absl::StrContains(text, '=')) {
        Report(absl::StrCat("'", request_.tokens[i], "' is no override, expected KEY=VALUE"));
      } else if (IsHydraKey(token.key)) {
        result_.warnings.push_back(absl::StrCat(kCommandLine, ": '", request_.tokens[i], "' has no effect here"));
      } else if (!IsFileKey(token.key)) {
        values_.push_back(std::move(token));
      } else {
        TakeFile(std::move(token), &has_base);
      }
    }
  }

  void TakeFile(Override token, bool* has_base) {
    if (!token.is_addition && token.key != "config") {
      Report(absl::StrCat("'", token.key, "=", token.value, "' lacks its plus, expected '+", token.key, "=",
                          token.value, "'"));
    } else if (!token.is_addition && std::exchange(*has_base, true)) {
      Report(absl::StrCat("'config=", token.value, "' is a second base file, expected '+config=", token.value, "'"));
    } else {
      files_.push_back(std::move(token));
    }
  }

  void MergeFile(const Override& token) {
    std::string name = token.value;
    absl::string_view group = token.key;
    if (absl::ConsumePrefix(&group, "config/")) name = absl::StrCat(group, "/", name);
    const absl::StatusOr<std::string> path = FindConfigFile(name, request_.search_dirs);
    if (!path.ok()) return Report(path.status().message());
    result_.files.push_back(*path);
    const absl::StatusOr<std::string> text = ReadText(*path);
    if (!text.ok()) return Add(text.status().message());
    absl::StatusOr<ConfigNode> file = ParseYaml(*text, *path, &problems_);
    if (!file.ok()) return Add(file.status().message());
    if (!file->is_map()) {
      return Add(absl::StrCat(*path, ": config file is ", file->Describe(), ", expected a map with the key 'config'"));
    }
    DropHydra(&*file, &result_.warnings);
    KeyProblems found;
    if (request_.lists_all_unknown_keys) found.max_listed_keys = kMaxListedKeysOfCheck;
    CheckKeys(request_.defaults, *file, "", request_.defaults, &found);
    if (found.unlisted_keys > 0) {
      found.unknown_keys.push_back(absl::StrCat(*path, ": ", found.unlisted_keys, " further unknown keys"));
    }
    Append(found.wrong_kinds, &problems_);
    if (HasUnknownSection(*file)) {
      Append(found.unknown_keys, &problems_);
    } else {
      for (const std::string& line : found.unknown_keys) unknown_keys_.push_back(WithWayOut(line));
    }
    if (group != token.key) WarnOfReplacedLists(token.key, *file);
    MergeInto(&result_.root, *file);
  }

  // Fragments of one group look as if they added up.
  void WarnOfReplacedLists(const std::string& group, const ConfigNode& file) {
    for (const ConfigNode& earlier : fragments_[group]) {
      for (const std::string& key : CommonKeys(earlier, file)) {
        const ConfigNode* replaced = earlier.FindPath(key);  // null where a name has dots of its own
        const ConfigNode* list = file.FindPath(key);
        if (replaced == nullptr || list == nullptr) continue;
        if (!replaced->is_list() || !list->is_list() || *replaced == *list) continue;
        result_.warnings.push_back(absl::StrCat(list->location().ToString(), ": ", key, " replaces that of ",
                                                replaced->location().ToString(), ": lists are not joined"));
      }
    }
    fragments_[group].push_back(file);
  }

  // What stands beside 'config' is no mistyped key of a run but a file of another program, whose settings would have no
  // effect at all.
  bool HasUnknownSection(const ConfigNode& file) const {
    return std::any_of(file.entries().begin(), file.entries().end(),
                       [this](const auto& entry) { return request_.defaults.Find(entry.first) == nullptr; });
  }

  // Whoever has keys for another program learns how to keep them.
  std::string WithWayOut(const std::string& line) const {
    const bool has_hint = absl::EndsWith(line, "?");
    if (has_hint || request_.defaults.FindPath(kAllowUnknownKeys) == nullptr) return line;
    return absl::StrCat(line, "; ", kAllowUnknownKeys, "=True makes such keys warnings");
  }

  // The value on the command line, or else that of the files.
  bool AllowsUnknownKeys() const {
    const ConfigNode* in_files = result_.root.FindPath(kAllowUnknownKeys);
    bool allows = in_files != nullptr && in_files->AsBool().value_or(false);
    for (const Override& token : values_) {
      if (token.key != kAllowUnknownKeys) continue;
      allows = ConfigNode::Scalar(token.value, /*quoted=*/false, {}).AsBool().value_or(false);
    }
    return allows;
  }

  void SetValue(const Override& token) {
    if (!CheckPath(token)) return;
    const absl::StatusOr<ConfigNode> value = ParseValue(token, &problems_);
    if (!value.ok()) return Add(value.status().message());
    bool adds_keys = false;
    if (const ConfigNode* defaults = request_.defaults.FindPath(token.key)) {
      KeyProblems found;
      CheckKeys(*defaults, *value, token.key, request_.defaults, &found);
      Append(found.wrong_kinds, &problems_);
      if (!token.is_addition) Append(found.unknown_keys, &problems_);
      if (!found.wrong_kinds.empty()) return;
      adds_keys = !found.unknown_keys.empty();
    } else {
      adds_keys = !HasKey(request_.defaults, token.key);
    }
    if (token.is_addition && adds_keys && request_.defaults.FindPath(kAllowUnknownKeys) != nullptr) {
      result_.root.SetPath(kAllowUnknownKeys, ConfigNode::Scalar("true", /*quoted=*/false, value->location()));
    }
    ConfigNode merged = ConfigNode::Null();
    WarnOfRepetitions(token.key, *value);
    if (const ConfigNode* present = result_.root.FindPath(token.key)) merged = *present;
    MergeInto(&merged, *value);
    result_.root.SetPath(token.key, std::move(merged));
  }

  // A value of an earlier token would be lost in silence. An item of a list that is set anew is no repetition.
  void WarnOfRepetitions(const std::string& key, const ConfigNode& value) {
    ConfigNode token = ConfigNode::Map();
    token.SetPath(key, value);
    for (const std::string& path : CommonKeys(typed_, token)) {
      const ConfigNode* earlier = typed_.FindPath(path);  // null where a name has dots of its own
      const ConfigNode* now = token.FindPath(path);
      if (earlier == nullptr || now == nullptr || SameValue(*earlier, *now)) continue;
      if (earlier->is_list() && now->is_map()) continue;
      result_.warnings.push_back(absl::StrCat(
          now->location().ToString(), ": ", path, " is ", now->Describe(), ", which holds; ", earlier->Describe(),
          " of ", earlier->location().ToString(), " has no effect: the key is given twice"));
    }
    MergeInto(&typed_, token);
  }

  // Whether the key may be set: known (or added on purpose), and with maps all the way.
  bool CheckPath(const Override& token) {
    const std::vector<std::string> parts = absl::StrSplit(token.key, '.');
    if (parts.size() > kMaxKeyParts) {
      Report(absl::StrCat("key '", token.key.substr(0, 40), "...' has ", parts.size(), " parts, expected at most ",
                          kMaxKeyParts));
      return false;
    }
    if (HasEmptyPart(token.key)) {
      Report(absl::StrCat("key '", token.key, "' has an empty part between its dots, expected '",
                          absl::StrJoin(NonEmptyParts(parts), "."), "'"));
      return false;
    }
    const bool is_known = HasKey(result_.root, token.key) || HasKey(request_.defaults, token.key);
    // A plus adds keys to the run's settings; beside them nobody would read one.
    const bool may_be_added = token.is_addition && request_.defaults.Find(parts.front()) != nullptr;
    if (!may_be_added && !is_known) {
      Report(UnknownKey(token.key, result_.root));
      return false;
    }
    return CheckParents(parts);
  }

  bool CheckParents(const std::vector<std::string>& parts) {
    std::string path;
    for (const std::string& part : parts) {
      const ConfigNode* parent = result_.root.FindPath(path);
      if (parent == nullptr || parent->is_null()) return true;
      const std::string next = JoinPath(path, part);
      if (!parent->is_map() && parent->FindPath(part) == nullptr) {
        Report(absl::StrCat("key '", next, "' cannot be set: ", path, " is ", DescribeKeys(*parent), " (",
                            parent->location().ToString(), ")"));
        return false;
      }
      path = next;
    }
    return true;
  }

  void Report(absl::string_view problem) { Add(absl::StrCat(kCommandLine, ": ", problem)); }
  void Add(absl::string_view problem) { problems_.emplace_back(problem); }

  static void Append(const std::vector<std::string>& lines, std::vector<std::string>* to) {
    to->insert(to->end(), lines.begin(), lines.end());
  }

  const ComposeRequest& request_;
  ComposedConfig result_;
  std::map<std::string, std::vector<ConfigNode>> fragments_;  // by their group
  std::vector<Override> files_;
  std::vector<Override> values_;
  ConfigNode typed_ = ConfigNode::Map();   // what the values have given
  std::vector<std::string> unknown_keys_;  // of files
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<ComposedConfig> Compose(const ComposeRequest& request) {
  std::vector<std::string> problems;
  ComposedConfig composed = ComposeWithProblems(request, &problems);
  if (problems.empty()) return composed;
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

ComposedConfig ComposeWithProblems(const ComposeRequest& request, std::vector<std::string>* problems) {
  return Composer(request).Run(problems);
}

}  // namespace ssl
