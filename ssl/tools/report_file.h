// SPDX-License-Identifier: Apache-2.0
//
// A small file for a process that is about to end, in a directory that was opened before. By then the path may lead to
// another directory, such as that of a later run: nothing is written there.
//
//   const ReportFile file("/runs/a/failure.json");
//   ...                        // Replace may be called by any signal handler
#ifndef SSL_TOOLS_REPORT_FILE_H_
#define SSL_TOOLS_REPORT_FILE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

class ReportFile {
 public:
  // Of no place: nothing is ever written.
  ReportFile() = default;
  // Opens the directory of `path`; of no place where that fails.
  explicit ReportFile(const std::string& path);
  ~ReportFile();
  ReportFile(ReportFile&& other) noexcept;
  ReportFile& operator=(ReportFile&& other) noexcept;

  // Writes the file anew, whole or not at all. Best effort: whoever calls has nobody to tell. Async-signal-safe.
  void Replace(absl::string_view text) const noexcept;

 private:
  int directory_ = -1;
  std::string name_;
  std::string temporary_;
};

}  // namespace ssl

#endif  // SSL_TOOLS_REPORT_FILE_H_
