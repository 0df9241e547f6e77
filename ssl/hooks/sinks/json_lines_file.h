// SPDX-License-Identifier: Apache-2.0
//
// A file of JSON objects, one a line, in the order of an integer that each has under the same key, such as the
// iteration.
//
// The file is opened at the first line. A run that resumes at an earlier place than the file holds goes on where it
// resumed: lines behind the first line's place are dropped, and so is a last line that a crash cut off. Of the lines of
// that place itself, those stay that come before the same report, made by an earlier process: a checkpoint at the end
// of an epoch lies between the reports of its last step and of the test phase. One thread.
#ifndef SSL_HOOKS_SINKS_JSON_LINES_FILE_H_
#define SSL_HOOKS_SINKS_JSON_LINES_FILE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

class JsonLinesFile {
 public:
  // path: made with its directory when missing. place_keys: the integer's key first, then others that say where a
  // report belongs; all further keys are values. Two reports of one place are the same when they have the same names;
  // where none has, when they share one that does not begin with `anywhere`: such values may stand in any report. The
  // file system outlives the object.
  JsonLinesFile(FileSystem& file_system, std::string path, std::vector<std::string> place_keys, std::string anywhere);

  // Lines behind `place` tell of what is done again: they go with the first new line, whatever that is of. Before it.
  void GoOnFrom(int64_t place) { goes_on_from_ = place; }

  // json: an object on one line, whose first place key is `place`. It reaches the operating system at once. Errors name
  // the path; the next line opens and repairs the file then. FailedPrecondition when something that is no file has its
  // name.
  absl::Status Append(int64_t place, absl::string_view json);

  // Makes the lines durable.
  absl::Status Sync();

 private:
  absl::Status Open(int64_t place, absl::string_view first_line);
  // True when the file was written anew.
  absl::StatusOr<bool> DropFrom(int64_t place, absl::string_view first_line);

  FileSystem& file_system_;
  const std::string path_;
  const std::vector<std::string> place_keys_;
  const std::string anywhere_;
  int64_t goes_on_from_ = std::numeric_limits<int64_t>::max();  // not known: the first new line's place tells
  std::unique_ptr<WritableFile> file_;                          // null before the first line
};

}  // namespace ssl

#endif  // SSL_HOOKS_SINKS_JSON_LINES_FILE_H_
