// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/markdown.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace ssl {
namespace {

std::string InTable(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

}  // namespace

std::string MarkdownCode(absl::string_view text) { return text.empty() ? "" : absl::StrCat("`", InTable(text), "`"); }

std::string MarkdownTable(absl::string_view first_column, const std::vector<HelpRow>& rows) {
  std::string table =
      absl::StrCat("\n| ", first_column, " | type | default | range | meaning |\n|---|---|---|---|---|\n");
  for (const HelpRow& row : rows) {
    absl::StrAppend(&table, "| ", MarkdownCode(row.key), " | ", row.type, " | ", MarkdownCode(row.default_value), " | ",
                    row.range, " | ", InTable(row.doc), " |\n");
  }
  return table;
}

std::string MarkdownSection(const NamedEntry& entry) {
  const std::vector<HelpRow> rows = entry.defaults == nullptr ? std::vector<HelpRow>() : HelpRows("", *entry.defaults);
  return absl::StrCat("\n### ", entry.name, "\n", entry.summary, "\n",
                      rows.empty() ? "" : MarkdownTable("parameter", rows));
}

}  // namespace ssl
