// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/compatibility_page.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/same_value.h"
#include "ssl/config/writer.h"
#include "ssl/config/yaml.h"

namespace ssl {
namespace {

constexpr char kHeader[] = R"(# Every configuration key

Made by `./bazelw run //ssl/tools:print_vissl_keys > docs/vissl_keys.md`; do not edit. What the columns mean, and how to run
VISSL's files: [vissl_compat.md](vissl_compat.md).
)";

std::string Code(const std::string& text) {
  return text.empty() ? "" : absl::StrCat("`", absl::StrReplaceAll(text, {{"|", "\\|"}}), "`");
}

std::string OfVissl(const CatalogEntry& entry, const VisslDefaults& vissl_defaults) {
  const auto found = vissl_defaults.find(entry.path);
  if (found == vissl_defaults.end()) return "–";
  const absl::StatusOr<ConfigNode> ours =
      ParseYaml(absl::StrCat("default: ", entry.default_value), entry.path, nullptr);
  const bool is_same = ours.ok() && SameValue(*ours->Find("default"), found->second);
  return is_same ? "" : Code(FormatValue(found->second));
}

std::string Row(const CatalogEntry& entry, const VisslDefaults& vissl_defaults) {
  const char* status = entry.status == CatalogEntry::Status::kWorks     ? "works"
                       : entry.status == CatalogEntry::Status::kIgnored ? "ignored"
                                                                        : "not yet";
  return absl::StrCat("| ", Code(entry.path), " | ", Code(entry.default_value), " | ", OfVissl(entry, vissl_defaults),
                      " | ", status, " | ", absl::StrReplaceAll(entry.doc, {{"|", "\\|"}}), " |\n");
}

// "LOSS" of "LOSS.swav_loss.temperature"; "" of a key directly under `config`.
std::string SectionOf(const std::string& path) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(path, absl::MaxSplits('.', 1));
  return parts.second.empty() ? "" : parts.first;
}

}  // namespace

absl::StatusOr<VisslDefaults> ParseVisslDefaults(absl::string_view text) {
  SSL_ASSIGN_OR_RETURN(const ConfigNode keys, ParseYaml(text, "VISSL's defaults", nullptr));
  return VisslDefaults(keys.entries().begin(), keys.entries().end());
}

std::string CompatibilityPage(const std::vector<CatalogEntry>& entries, const VisslDefaults& vissl_defaults) {
  std::map<std::string, std::string> tables;
  for (const CatalogEntry& entry : entries) tables[SectionOf(entry.path)] += Row(entry, vissl_defaults);
  std::string page = kHeader;
  for (const auto& [section, rows] : tables) {
    absl::StrAppend(&page, "\n## ", section.empty() ? "Without a section" : section,
                    "\n| key | default | in VISSL | status | meaning |\n|---|---|---|---|---|\n", rows);
  }
  return page;
}

}  // namespace ssl
