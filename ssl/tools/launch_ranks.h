// SPDX-License-Identifier: Apache-2.0
//
// A command that starts ranks of itself: --launch=local:N, and NUM_NODES and NUM_PROC_PER_NODE.
#ifndef SSL_TOOLS_LAUNCH_RANKS_H_
#define SSL_TOOLS_LAUNCH_RANKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/launch/local_launcher.h"
#include "ssl/tools/run_world.h"

namespace ssl {

// This process's program, as it was when it was opened: later there may be another at its path, or none.
class ThisProgram {
 public:
  // NotFound without /proc.
  static absl::StatusOr<std::unique_ptr<ThisProgram>> Open();
  ~ThisProgram();
  ThisProgram(const ThisProgram&) = delete;
  ThisProgram& operator=(const ThisProgram&) = delete;

  // Rather than /proc/self/exe: by this name it finds the files that lie beside it.
  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  ThisProgram(std::string path, int fd);

  const std::string path_;
  const int fd_;
};

// Starts `program` with `arguments` once for each rank of `world` (ssl/launch/local_launcher.h), and waits for all.
// root: what they will compose, resolved. After a failure all start again up to `restarts` times, as long as the newest
// checkpoint moves. None is started when `stop` was requested before; signals go to the ranks as long as there are any,
// and the outcome tells of them. A failure leaves the report of launch_failure.h. Unavailable, as CheckNotInUse
// (directory_in_use.h), where they were refused for a mistake and another training has the directory by then. Before
// anything of this process has started threads.
absl::StatusOr<LaunchOutcome> LaunchRanks(const ThisProgram& program, const RunWorld& world, const ConfigNode& root,
                                          const std::vector<std::string>& arguments, int64_t restarts,
                                          const StopToken& stop);

}  // namespace ssl

#endif  // SSL_TOOLS_LAUNCH_RANKS_H_
