// SPDX-License-Identifier: Apache-2.0
//
// Lists of strings from files: paths of images, names of classes. The files are not trusted.
#ifndef SSL_DATA_DATASETS_STRING_LIST_H_
#define SSL_DATA_DATASETS_STRING_LIST_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/base/clock.h"
#include "ssl/io/file_system.h"

namespace ssl {

// The longest path that Linux opens.
inline constexpr size_t kMaxLineBytes = 4096;

// A .npy file of strings, or a text file with one string a line. Lines end with "\n" or "\r\n"; empty lines at the end
// are left out; other empty lines, lines of more than kMaxLineBytes and NUL bytes are an InvalidArgument with path and
// line. Errors name the path.
// Hands each line to `take`, so that a list of many lines is in memory once. After an error some lines were handed
// over. A text of which reading takes long is told of every two seconds, by `clock`.
absl::Status ForEachLine(FileSystem& file_system, const std::string& path,
                         const std::function<void(absl::string_view)>& take, Clock& clock = Clock::Real());

// All lines.
absl::StatusOr<std::vector<std::string>> ReadStringList(FileSystem& file_system, const std::string& path);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_STRING_LIST_H_
