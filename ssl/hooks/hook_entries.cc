// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/hook_entries.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

// Names of files are made of it and of others: what a system allows for one is 255.
constexpr size_t kMaxNameLength = 100;

// A part of names in checkpoints and of keys of the command line.
bool IsName(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

absl::StatusOr<HookEntry> ReadEntry(const ConfigNode& node, std::string path) {
  HookEntry entry;
  entry.path = std::move(path);
  if (node.is_scalar() && !node.text().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", entry.path, " is '", node.text(),
                                                   "', expected a map, as {type: ", node.text(), "}"));
  }
  absl::Status status = ReadOptions(node, entry.path, UnknownKeys::kError, &entry);
  const auto wrong = [&node, &entry](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", entry.path, what));
  };
  if (status.ok() && entry.type.empty()) status = wrong(" has no type, expected {type: HOOK, kwargs: {...}}");
  if (status.ok() && !IsName(entry.name)) {
    status = wrong(absl::StrCat(".name is '", entry.name, "', expected letters, digits, '_' and '-'"));
  }
  if (status.ok() && entry.name.size() > kMaxNameLength) {
    status = wrong(absl::StrCat(".name has ", entry.name.size(), " characters, expected at most ", kMaxNameLength));
  }
  const ConfigNode* kwargs = node.Find("kwargs");
  if (kwargs == nullptr || kwargs->is_null()) entry.kwargs = ConfigNode::Map(node.location());
  if (status.ok() && !entry.kwargs.is_map()) {
    status = wrong(absl::StrCat(".kwargs is ", entry.kwargs.Describe(), ", expected a map of the hook's options"));
  }
  if (!status.ok()) return status;
  return entry;
}

}  // namespace

void HookListOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("hooks", &hooks, Doc("hooks with their options: [{type: HOOK, kwargs: {...}, name: INSTANCE}, ...]"));
}

void HookEntry::VisitFields(FieldVisitor& visitor) {
  visitor.Field("type", &type, Doc("name of a hook, or another program's name for it"));
  visitor.Field("name", &name, Doc("of this instance, when a run has several of the type"));
  visitor.Field("kwargs", &kwargs, Doc("options of the hook"));
}

absl::StatusOr<std::vector<HookEntry>> ReadHookEntries(const ConfigNode& config) {
  std::vector<HookEntry> entries;
  const ConfigNode* list = config.Find("hooks");
  if (list == nullptr || list->is_null()) return entries;
  if (!list->is_list()) {
    return absl::InvalidArgumentError(absl::StrCat(list->location().ToString(), ": config.hooks is ", list->Describe(),
                                                   ", expected a list of {type: HOOK, kwargs: {...}}"));
  }
  std::vector<std::string> problems;
  for (size_t i = 0; i < list->items().size(); ++i) {
    absl::StatusOr<HookEntry> entry = ReadEntry(list->items()[i], absl::StrCat("config.hooks.", i));
    if (entry.ok()) {
      entries.push_back(*std::move(entry));
    } else {
      problems.emplace_back(entry.status().message());
    }
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return entries;
}

}  // namespace ssl
