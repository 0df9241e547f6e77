// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/label_table.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/datasets/string_list.h"
#include "ssl/io/npy.h"

namespace ssl {
namespace {

// A label is the position of its name among the sorted different names.
void NumberNames(const std::vector<std::string>& names, LabelTable* table) {
  std::vector<std::string>& sorted = table->class_names;
  sorted = names;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  table->values.clear();
  table->values.reserve(names.size());
  for (const std::string& name : names) {
    table->values.push_back(std::lower_bound(sorted.begin(), sorted.end(), name) - sorted.begin());
  }
}

// All lines as integers; false when one is none.
bool ParseIntegers(const std::vector<std::string>& lines, std::vector<int64_t>* values) {
  values->resize(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::SimpleAtoi(lines[i], &(*values)[i])) return false;
  }
  return true;
}

absl::StatusOr<LabelTable> ReadNpyLabels(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(path));
  LabelTable table;
  const bool is_text = array.dtype == NpyDtype::kUnicode || array.dtype == NpyDtype::kBytes;
  const size_t max_dimensions = is_text ? 1 : 2;
  if (array.shape.empty() || array.shape.size() > max_dimensions) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": labels have the shape [", absl::StrJoin(array.shape, ", "),
                                                   "], expected [N]", is_text ? "" : " or [N, classes]"));
  }
  if (is_text) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpyStrings(array));
    NumberNames(names, &table);
    return table;
  }
  if (array.shape.size() == 2) table.num_columns = array.shape[1];
  SSL_ASSIGN_OR_RETURN(table.values, NpyInts(array));
  return table;
}

absl::StatusOr<LabelTable> ReadTextLabels(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadStringList(path));
  LabelTable table;
  if (!ParseIntegers(lines, &table.values)) NumberNames(lines, &table);
  return table;
}

absl::Status CheckValues(const LabelTable& table, const std::string& path) {
  const bool rows = table.num_columns > 0;
  for (size_t i = 0; i < table.values.size(); ++i) {
    const int64_t value = table.values[i];
    if (rows ? value >= -1 && value <= 1 : value >= 0) continue;
    const std::string expected = rows ? "1, 0 or -1 (unknown) for each class" : "a class from 0 on";
    return absl::InvalidArgumentError(absl::StrCat(path, ": label of sample ", rows ? i / table.num_columns : i, " is ",
                                                   value, ", expected ", expected));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LabelTable> ReadLabelFile(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(LabelTable table, absl::EndsWith(path, ".npy") ? ReadNpyLabels(path) : ReadTextLabels(path));
  SSL_RETURN_IF_ERROR(CheckValues(table, path));
  return table;
}

}  // namespace ssl
