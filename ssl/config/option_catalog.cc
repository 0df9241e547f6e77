// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/option_catalog.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/config/help.h"
#include "ssl/config/writer.h"

namespace ssl {
namespace {

bool IsPlainMap(const ConfigNode& node) { return node.is_map() && !node.free_form(); }

absl::Status DeclaredTwice(absl::string_view key) {
  return absl::AlreadyExistsError(absl::StrCat("option catalog: key '", key, "' is declared twice"));
}

// Adds the keys of `added` to the map `tree`, which stands at `path`.
absl::Status AddKeys(const ConfigNode& added, const std::string& path, ConfigNode* tree) {
  for (const auto& [key, value] : added.entries()) {
    ConfigNode* present = tree->FindMutable(key);
    if (present == nullptr) {
      tree->Set(key, value);
      continue;
    }
    if (!IsPlainMap(*present) || !IsPlainMap(value)) return DeclaredTwice(JoinPath(path, key));
    if (absl::Status status = AddKeys(value, JoinPath(path, key), present); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

// Wraps `tree` in the maps of `path`, so that one merge puts it in its place.
absl::StatusOr<ConfigNode> Wrap(ConfigNode tree, const std::string& path) {
  if (path.empty()) return tree;
  std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->empty()) {
      return absl::InvalidArgumentError(absl::StrCat("option catalog: path '", path, "' has an empty part"));
    }
    ConfigNode outer = ConfigNode::Map();
    outer.Set(*part, std::move(tree));
    tree = std::move(outer);
  }
  return tree;
}

}  // namespace

absl::Status OptionCatalog::Add(std::string path, Factory make) {
  const std::unique_ptr<Options> options = make == nullptr ? nullptr : make();
  if (options == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("option catalog: factory of '", path, "' makes no options"));
  }
  absl::StatusOr<ConfigNode> tree = Wrap(WriteOptions(*options), path);
  if (!tree.ok()) return tree.status();
  ConfigNode defaults = defaults_;
  if (absl::Status status = AddKeys(*tree, "", &defaults); !status.ok()) return status;
  defaults_ = std::move(defaults);
  sections_.push_back({std::move(path), std::move(make)});
  return absl::OkStatus();
}

std::string OptionCatalog::Help(absl::string_view prefix) const {
  if (prefix == "config") prefix = "";
  absl::ConsumePrefix(&prefix, "config.");
  const std::string full_prefix = absl::StrCat("config.", prefix);
  std::vector<HelpRow> rows;
  std::vector<std::string> keys;
  for (const Section& section : sections_) {
    const std::string path = JoinPath("config", section.path);
    keys.push_back(path);
    for (HelpRow& row : HelpRows(path, *section.make())) {
      keys.push_back(row.key);
      if (absl::StartsWith(row.key, full_prefix)) rows.push_back(std::move(row));
    }
  }
  if (!rows.empty()) return FormatHelpRows(rows);
  return absl::StrCat("no option begins with '", full_prefix, "'", DidYouMean(full_prefix, keys), "\n");
}

std::vector<std::string> OptionCatalog::Paths() const {
  std::vector<std::string> paths;
  for (const Section& section : sections_) paths.push_back(section.path);
  return paths;
}

}  // namespace ssl
