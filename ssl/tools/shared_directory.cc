// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/shared_directory.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/host_name.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kMark[] = ".shared-";

absl::Status LookFor(const std::string& file, const std::string& path, const std::string& first_host,
                     FileSystem& file_system, int64_t rank) {
  if (file_system.Exists(file)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "run directory ", path, " of rank ", rank, " (on ", HostName("unknown"), ") is not that of rank 0 (on ",
      first_host, "); config.CHECKPOINT.DIR has to be on a file system that all hosts reach"));
}

}  // namespace

bool IsSharedMark(absl::string_view name) { return absl::StartsWith(name, kMark); }

absl::Status CheckSharedDirectory(const std::string& path, FileSystem& file_system, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();
  const bool is_first = communicator.rank() == 0;
  // A name that no rank has asked for before: network file systems remember what was not there.
  std::string name = absl::StrCat(kMark, getpid(), "-", HostName("unknown"));
  std::string host = HostName("unknown");
  for (std::string* text : {&name, &host}) SSL_RETURN_IF_ERROR(BroadcastText(0, text, communicator));
  const std::string file = absl::StrCat(path, "/", name);
  const absl::Status made = is_first ? WriteFileAtomically(file_system, file, "") : absl::OkStatus();
  SSL_RETURN_IF_ERROR(AgreeOnStatus(made, "writing into the run directory", communicator));
  absl::Status found = LookFor(file, path, host, file_system, communicator.rank());
  found = AgreeOnStatus(found, "finding the run directory", communicator);
  if (is_first) file_system.RemoveFile(file).IgnoreError();
  return found;
}

}  // namespace ssl
