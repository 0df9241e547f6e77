// SPDX-License-Identifier: Apache-2.0
//
// The labels of a whole data set, and the files that hold them: of a sample one class, a row with a value for each
// class, or a list of classes, one from each of several files.
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
  enum class Kind {
    kClass,  // a value is the class of a sample
    kRow,    // num_columns values for each sample, one a class: 1, 0, or -1 for unknown
    kList,   // num_columns values for each sample, each a class
  };
  Kind kind = Kind::kClass;
  int64_t num_columns = 1;
  std::vector<int64_t> values;           // of sample i from i * num_columns on
  std::vector<std::string> class_names;  // by class, where the file has names; else empty

  int64_t size() const { return static_cast<int64_t>(values.size()) / num_columns; }
  // The values of a sample.
  absl::Span<const int64_t> of(int64_t index) const {
    return absl::MakeConstSpan(values).subspan(index * num_columns, num_columns);
  }
};

// Reads `path`:
//   .npy of integers [N]: classes, as they are; [N, K]: rows; of strings [N]: classes are the sorted different strings;
//   anything else is text with one label a line: classes when all are integers, strings as above when at most half of
//   them are; in between the lines that are none are an error.
// A class is at least 0, a value of a row is 1, 0 or -1. InvalidArgument and DataLoss name the path and what was found.
absl::StatusOr<LabelTable> ReadLabelFile(FileSystem& file_system, const std::string& path);

// The same of one file; of several each has a class for each sample, and the sample has a list of them. Besides the
// errors above, InvalidArgument when a file holds rows or names, or other numbers of labels than the first.
absl::StatusOr<LabelTable> ReadLabelFiles(FileSystem& file_system, const std::vector<std::string>& paths);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_LABEL_TABLE_H_
