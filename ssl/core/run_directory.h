// SPDX-License-Identifier: Apache-2.0
//
// The directory of one run, which one run uses at a time. Whoever writes there opens it first: the lock is held from
// Open until the object dies, or until the process ends in any way.
//
//   SSL_ASSIGN_OR_RETURN(const auto directory, RunDirectory::Open("/runs/a", file_system, communicator));
#ifndef SSL_CORE_RUN_DIRECTORY_H_
#define SSL_CORE_RUN_DIRECTORY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

class RunDirectory {
 public:
  // Makes `path` when it is missing and takes its lock, the file `.lock`; rank 0 does both for all. Unavailable,
  // naming process and host, when another run holds it. Collective.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(const std::string& path, FileSystem& file_system,
                                                            Communicator& communicator);

  const std::string& path() const { return path_; }

  // FailedPrecondition when the directory, or the lock in it, was removed or replaced since Open: another run may be
  // in that place now, and nothing may be written there any more. Rank 0 knows; OK on the others. Thread-safe.
  absl::Status CheckInUse() const;

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::unique_ptr<FileLock> lock_;  // rank 0
};

}  // namespace ssl

#endif  // SSL_CORE_RUN_DIRECTORY_H_
