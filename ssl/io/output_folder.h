// SPDX-License-Identifier: Apache-2.0
//
// Folders that a run makes below its directory. That directory is the user's word and may be a link; whatever lies
// below it may have been planted (docs/security.md), so that a link in any part of the way is refused.
//
//   const OutputFolder folder = {"/runs/a", "feat_vis/iteration_100"};
//   SSL_RETURN_IF_ERROR(CreateOutputFolder(folder, file_system));
//   SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system, folder.path() + "/map.png", png));
#ifndef SSL_IO_OUTPUT_FOLDER_H_
#define SSL_IO_OUTPUT_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct OutputFolder {
  std::string root;  // the directory of a run, or another one that the user has named
  std::string name;  // the way from there, with '/' between its parts; "": the root itself

  std::string path() const;
  // The folder `below` of this one.
  OutputFolder Below(absl::string_view below) const;
};

// FailedPrecondition, naming the link and the way out, when a part of `name` is a symbolic link. Parts that are missing
// are none. Asks the file system of the machine.
absl::Status CheckOutputFolder(const OutputFolder& folder);

// The same, then makes what is missing of it. To be called before each use: what was a folder once may be a link now.
absl::Status CreateOutputFolder(const OutputFolder& folder, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_IO_OUTPUT_FOLDER_H_
