// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/option_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/config/key_check.h"
#include "ssl/config/merge.h"
#include "ssl/config/reader.h"
#include "ssl/config/writer.h"

namespace ssl {
namespace {

constexpr char kRoot[] = "config";
// Defaults stand in no file, and what a program sets without a place does neither: by this they can be told apart.
constexpr int kLineOfDefaults = -1;

// "config.LOSS", or "config" for what stands at the root.
std::string RootPath(const std::string& path) { return path.empty() ? std::string(kRoot) : JoinPath(kRoot, path); }

std::string HelpNote(const CompatibilityKey& key) {
  const bool is_ignored = key.support == CompatibilityKey::Support::kIgnored;
  return absl::StrCat(is_ignored ? "ignored: " : "not yet: ", key.note);
}

CatalogEntry::Status StatusOf(const CompatibilityKey& key) {
  const bool is_ignored = key.support == CompatibilityKey::Support::kIgnored;
  return is_ignored ? CatalogEntry::Status::kIgnored : CatalogEntry::Status::kNotYet;
}

}  // namespace

absl::Status OptionCatalog::Add(std::string path, Factory make, AtResume at_resume) {
  const std::unique_ptr<Options> options = make == nullptr ? nullptr : make();
  if (options == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("option catalog: factory of '", path, "' makes no options"));
  }
  if (!path.empty() && HasEmptyPart(path)) {
    return absl::InvalidArgumentError(absl::StrCat("option catalog: path '", path, "' has an empty part"));
  }
  ConfigNode tree = ConfigNode::Map();
  tree.SetPath(path, WriteOptions(*options));
  tree.Relocate({/*file=*/"", kLineOfDefaults});
  absl::Status status = DeclaredOnce(CommonKeys(defaults_, tree));
  if (!status.ok()) return status;
  MergeInto(&defaults_, tree);
  for (const HelpRow& row : HelpRows(path, *options)) {
    if (row.may_change || at_resume == AtResume::kMayChange) may_change_.insert(row.key);
  }
  sections_.push_back({std::move(path), std::move(make)});
  return status;
}

absl::Status OptionCatalog::AddKeys(std::vector<CompatibilityKey> keys) {
  CompatibilityKeys added;
  absl::Status status = added.Add(keys);
  status.Update(DeclaredOnce(CommonKeys(defaults_, added.defaults())));
  if (!status.ok()) return status;
  MergeInto(&defaults_, added.defaults());
  for (const CompatibilityKey& key : keys) may_change_.insert(key.path);
  return unread_keys_.Add(std::move(keys));
}

bool OptionCatalog::MayChange(absl::string_view path) const {
  for (size_t end = path.size(); end != absl::string_view::npos; end = path.rfind('.', end - 1)) {
    if (may_change_.count(path.substr(0, end)) > 0) return true;
    if (end == 0) break;
  }
  return false;
}

absl::Status OptionCatalog::Check(const ConfigNode& config) const { return ProblemsInOrder(Problems(config)); }

std::vector<ConfigProblem> OptionCatalog::Problems(const ConfigNode& config) const {
  std::vector<ConfigProblem> problems;
  for (const Section& section : sections_) {
    const ConfigNode* node = FindValue(config, section.path, &problems);
    if (node == nullptr) continue;
    const std::vector<ConfigProblem> found =
        ReadProblems(*node, RootPath(section.path), UnknownKeys::kIgnore, section.make().get());
    problems.insert(problems.end(), found.begin(), found.end());
  }
  unread_keys_.Check(config, &problems);
  return SortedProblems(std::move(problems));
}

std::vector<UnsupportedKey> OptionCatalog::Unsupported(const ConfigNode& config) const {
  return unread_keys_.Unsupported(config);
}

std::vector<CatalogEntry> OptionCatalog::Entries() const {
  std::vector<CatalogEntry> entries;
  for (const Section& section : sections_) {
    for (const HelpRow& row : HelpRows(section.path, *section.make())) {
      if (row.type == kSectionType) continue;
      entries.push_back({row.key, row.type, row.default_value, row.doc, CatalogEntry::Status::kWorks});
    }
  }
  for (const CompatibilityKeys::Entry& unread : unread_keys_.entries()) {
    entries.push_back(
        {unread.key.path, unread.TypeName(), FormatValue(unread.default_value), unread.key.note, StatusOf(unread.key)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const CatalogEntry& left, const CatalogEntry& right) { return left.path < right.path; });
  return entries;
}

std::vector<HelpRow> OptionCatalog::Rows() const {
  std::vector<HelpRow> rows;
  for (const Section& section : sections_) {
    for (HelpRow& row : HelpRows(RootPath(section.path), *section.make())) rows.push_back(std::move(row));
  }
  for (const CompatibilityKeys::Entry& unread : unread_keys_.entries()) {
    rows.push_back({JoinPath(kRoot, unread.key.path), unread.TypeName(), FormatValue(unread.default_value), "",
                    HelpNote(unread.key)});
  }
  return rows;
}

std::string OptionCatalog::Help(absl::string_view prefix) const {
  if (prefix == kRoot) prefix = "";
  absl::ConsumePrefix(&prefix, "config.");
  const std::string full_prefix = absl::StrCat("config.", prefix);
  std::vector<std::string> keys;
  for (const Section& section : sections_) keys.push_back(RootPath(section.path));
  std::vector<HelpRow> rows;
  for (HelpRow& row : Rows()) {
    keys.push_back(row.key);
    if (absl::StartsWith(row.key, full_prefix)) rows.push_back(std::move(row));
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
