// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/output_folder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/status_macros.h"

namespace ssl {

std::string OutputFolder::path() const { return name.empty() ? root : absl::StrCat(root, "/", name); }

OutputFolder OutputFolder::Below(absl::string_view below) const {
  return {root, name.empty() ? std::string(below) : absl::StrCat(name, "/", below)};
}

absl::Status CheckOutputFolder(const OutputFolder& folder) {
  OutputFolder reached = {folder.root, ""};
  // From the root down: below a link, the next part would be looked for where the link leads to.
  for (const absl::string_view part : absl::StrSplit(folder.name, '/', absl::SkipEmpty())) {
    reached = reached.Below(part);
    SSL_RETURN_IF_ERROR(CheckNoLink(reached.path()));
  }
  return absl::OkStatus();
}

absl::Status CreateOutputFolder(const OutputFolder& folder, FileSystem& file_system) {
  SSL_RETURN_IF_ERROR(CheckOutputFolder(folder));
  return file_system.CreateDirectories(folder.path());
}

}  // namespace ssl
