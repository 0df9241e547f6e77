// SPDX-License-Identifier: Apache-2.0
//
// The labels of a whole data set, one class a sample or a row of classes, and the files that hold them.
#ifndef SSL_DATA_DATASETS_LABEL_TABLE_H_
#define SSL_DATA_DATASETS_LABEL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct LabelTable {
  // 0: values[i] is the class of sample i. Else: sample i has the row values[i * num_columns ...], one value a class:
  // 1, 0, or -1 for unknown.
  int64_t num_columns = 0;
  std::vector<int64_t> values;
  std::vector<std::string> class_names;  // by class, where the file has names; else empty

  int64_t size() const { return static_cast<int64_t>(values.size()) / (num_columns == 0 ? 1 : num_columns); }
  absl::Span<const int64_t> row(int64_t index) const {
    return absl::MakeConstSpan(values).subspan(index * num_columns, num_columns);
  }
};

// Reads `path`:
//   .npy of integers [N]: classes, as they are; [N, K]: rows; of strings [N]: classes are the sorted different strings;
//   anything else is text with one label a line: classes when all are integers, strings as above when at most half of
//   them are; in between the lines that are none are an error.
// A class is at least 0, a value of a row is 1, 0 or -1. InvalidArgument and DataLoss name the path and what was found.
absl::StatusOr<LabelTable> ReadLabelFile(FileSystem& file_system, const std::string& path);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_LABEL_TABLE_H_
