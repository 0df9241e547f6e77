// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/help.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ssl {
namespace {

// Longer defaults would push the documentation off the screen.
constexpr size_t kMaxDefaultWidth = 32;

std::string Shorten(std::string text) {
  if (text.size() > kMaxDefaultWidth) {
    text.resize(kMaxDefaultWidth - 3);
    text += "...";
  }
  return text;
}

class HelpCollector : public FieldVisitor {
 public:
  HelpCollector(absl::string_view path, std::vector<HelpRow>* rows) : path_(path), rows_(*rows) {}

  void Field(absl::string_view name, bool* value, const Doc& doc) override {
    Add(name, "bool", ConfigNode::FromBool(*value), doc);
  }
  void Field(absl::string_view name, int64_t* value, const Doc& doc) override {
    Add(name, "int", ConfigNode::FromInt(*value), doc);
  }
  void Field(absl::string_view name, double* value, const Doc& doc) override {
    Add(name, "float", ConfigNode::FromDouble(*value), doc);
  }
  void Field(absl::string_view name, std::string* value, const Doc& doc) override {
    Add(name, "string", ConfigNode::FromString(*value), doc);
  }
  void Field(absl::string_view name, std::vector<int64_t>* value, const Doc& doc) override {
    Add(name, "list of int", ConfigNode::FromInts(*value), doc);
  }
  void Field(absl::string_view name, std::vector<double>* value, const Doc& doc) override {
    Add(name, "list of float", ConfigNode::FromDoubles(*value), doc);
  }
  void Field(absl::string_view name, std::vector<std::string>* value, const Doc& doc) override {
    Add(name, doc.may_be_one() ? "list of string, or one" : "list of string", ConfigNode::FromStrings(*value), doc);
  }
  void Field(absl::string_view name, ConfigNode* value, const Doc& doc) override { Add(name, "any", *value, doc); }
  void Section(absl::string_view name, Options* nested, const Doc& doc) override {
    const std::string key = JoinPath(path_, name);
    rows_.push_back({key, kSectionType, "", "", doc.text(), doc.may_change()});
    HelpCollector collector(key, &rows_);
    nested->VisitFields(collector);
  }

 private:
  void Add(absl::string_view name, absl::string_view type, const ConfigNode& value, const Doc& doc) {
    rows_.push_back(
        {JoinPath(path_, name), std::string(type), FormatValue(value), doc.Range(), doc.text(), doc.may_change()});
  }

  const std::string path_;
  std::vector<HelpRow>& rows_;
};

constexpr size_t kColumns = 5;

std::array<std::string, kColumns> Cells(const HelpRow& row) {
  return {row.key, row.type, Shorten(row.default_value), row.range, row.doc};
}

}  // namespace

std::string FormatValue(const ConfigNode& node) {
  std::vector<std::string> parts;
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      return "null";
    case ConfigNode::Kind::kScalar:
      return node.text().empty() ? "\"\"" : node.text();
    case ConfigNode::Kind::kList:
      for (const ConfigNode& item : node.items()) parts.push_back(FormatValue(item));
      return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
    case ConfigNode::Kind::kMap:
      for (const auto& [key, value] : node.entries()) {
        parts.push_back(absl::StrCat(key, ": ", FormatValue(value)));
      }
      return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
  }
  return "";
}

std::vector<HelpRow> HelpRows(absl::string_view path, Options& options) {
  std::vector<HelpRow> rows;
  HelpCollector collector(path, &rows);
  options.VisitFields(collector);
  return rows;
}

std::string FormatHelpRows(const std::vector<HelpRow>& rows) {
  if (rows.empty()) return "";
  std::vector<HelpRow> lines = {{"KEY", "TYPE", "DEFAULT", "RANGE", "MEANING"}};
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::array<size_t, kColumns> widths = {};
  for (const HelpRow& row : lines) {
    const std::array<std::string, kColumns> cells = Cells(row);
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const HelpRow& row : lines) {
    const std::array<std::string, kColumns> cells = Cells(row);
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      line += cells[i];
      line.append(widths[i] - cells[i].size() + 2, ' ');
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace ssl
