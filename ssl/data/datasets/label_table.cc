// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/label_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/datasets/string_list.h"
#include "ssl/io/npy.h"

namespace ssl {
namespace {

constexpr size_t kMaxNamed = 3;

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

absl::StatusOr<LabelTable> ReadNpyLabels(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(file_system, path));
  LabelTable table;
  const bool is_text = array.dtype == NpyDtype::kUnicode || array.dtype == NpyDtype::kBytes;
  const size_t max_dimensions = is_text ? 1 : 2;
  if (array.shape.empty() || array.shape.size() > max_dimensions || array.shape.back() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": labels have the shape [", absl::StrJoin(array.shape, ", "),
                                                   "], expected [N]", is_text ? "" : " or [N, classes]"));
  }
  if (is_text) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpyStrings(array));
    NumberNames(names, &table);
    return table;
  }
  if (array.shape.size() == 2) {
    table.kind = LabelTable::Kind::kRow;
    table.num_columns = array.shape[1];
  }
  SSL_ASSIGN_OR_RETURN(table.values, NpyInts(array));
  return table;
}

// A file of integers with some lines of another kind has a mistake in these lines: read as names, all of its classes
// would silently get other numbers.
absl::Status MixedLabels(const std::string& path, const std::vector<std::string>& lines,
                         const std::vector<size_t>& others) {
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(others.size(), kMaxNamed); ++i) {
    named.push_back(
        absl::StrCat(path, ":", others[i] + 1, ": '", absl::CHexEscape(lines[others[i]].substr(0, 80)), "'"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(named, ", "), others.size() > kMaxNamed ? ", ..." : "", ": ", others.size(), " of ",
                   lines.size(), " labels are no integers, expected all to be classes from 0 on, or most to be names"));
}

// Classes when all lines are integers, names when most are not.
absl::StatusOr<LabelTable> ReadTextLabels(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadStringList(file_system, path));
  LabelTable table;
  table.values.resize(lines.size());
  std::vector<size_t> others;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!absl::SimpleAtoi(lines[i], &table.values[i])) others.push_back(i);
  }
  if (others.empty()) return table;
  if (2 * others.size() < lines.size()) return MixedLabels(path, lines, others);
  NumberNames(lines, &table);
  return table;
}

absl::Status CheckValues(const LabelTable& table, const std::string& path) {
  const bool rows = table.kind == LabelTable::Kind::kRow;
  for (size_t i = 0; i < table.values.size(); ++i) {
    const int64_t value = table.values[i];
    if (rows ? value >= -1 && value <= 1 : value >= 0) continue;
    const std::string expected =
        !rows ? "a class from 0 on"
              : absl::StrCat("1, 0 or -1 (unknown) for each class",
                             table.num_columns == 1 ? "; class numbers are an array of one axis: labels[:, 0]" : "");
    return absl::InvalidArgumentError(absl::StrCat(path, ": label of sample ", rows ? i / table.num_columns : i, " is ",
                                                   value, ", expected ", expected));
  }
  return absl::OkStatus();
}

absl::Status CheckOneOfSeveral(const LabelTable& table, const std::string& path) {
  const bool has_names = !table.class_names.empty();
  if (table.kind == LabelTable::Kind::kClass && !has_names) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds ", has_names ? "names" : "rows of labels",
                                                 ", expected a class number for each sample, as in each of several "
                                                 "files that label the same samples"));
}

}  // namespace

absl::StatusOr<LabelTable> ReadLabelFile(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(LabelTable table, absl::EndsWith(path, ".npy") ? ReadNpyLabels(file_system, path)
                                                                      : ReadTextLabels(file_system, path));
  SSL_RETURN_IF_ERROR(CheckValues(table, path));
  return table;
}

absl::StatusOr<LabelTable> ReadLabelFiles(FileSystem& file_system, const std::vector<std::string>& paths) {
  if (paths.size() == 1) return ReadLabelFile(file_system, paths.front());
  LabelTable joined;
  joined.kind = LabelTable::Kind::kList;
  joined.num_columns = static_cast<int64_t>(paths.size());
  for (size_t file = 0; file < paths.size(); ++file) {
    SSL_ASSIGN_OR_RETURN(const LabelTable table, ReadLabelFile(file_system, paths[file]));
    SSL_RETURN_IF_ERROR(CheckOneOfSeveral(table, paths[file]));
    if (file == 0) joined.values.resize(table.values.size() * paths.size());
    if (table.values.size() * paths.size() != joined.values.size()) {
      return absl::InvalidArgumentError(absl::StrCat(paths[file], " holds ", table.values.size(), " labels, expected ",
                                                     joined.size(), ", as ", paths.front(), " does"));
    }
    for (size_t i = 0; i < table.values.size(); ++i) joined.values[i * paths.size() + file] = table.values[i];
  }
  return joined;
}

}  // namespace ssl
