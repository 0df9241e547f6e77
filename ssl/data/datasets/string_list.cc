// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/string_list.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"

namespace ssl {

absl::StatusOr<std::vector<std::string>> ReadStringList(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) return ReadNpyStrings(path);
  SSL_ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().Read(path));
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) lines.emplace_back(absl::StripSuffix(line, "\r"));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) return absl::InvalidArgumentError(absl::StrCat(path, ":", i + 1, ": the line is empty"));
  }
  return lines;
}

}  // namespace ssl
