// SPDX-License-Identifier: Apache-2.0
//
// What a command that starts ranks looks at before the first of them.
#ifndef SSL_TOOLS_LAUNCH_CHECK_H_
#define SSL_TOOLS_LAUNCH_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/tools/run_world.h"

namespace ssl {

// What this host has for processes that one command starts.
struct HostRoom {
  int64_t cores = 1;
  int64_t free_bytes = 0;   // of memory
  int64_t descriptors = 0;  // that this process may open
  int64_t processes = 0;    // that this user may have

  // What cannot be read is as much as anybody could want.
  static HostRoom OfThisHost();
};

// InvalidArgument, with the reckoning, when `ranks` processes cannot be had.
absl::Status CheckRoom(int64_t ranks, const HostRoom& room);

// CheckRoom for the ranks that `world` starts on this host, and that rank 0 of them can serve a port that is given; OK
// where it starts none.
absl::Status CheckCanStart(const RunWorld& world);

// What to expect of more ranks than cores; "" for no more, and where `world` starts none.
std::string CrowdWarning(const RunWorld& world);

// CheckCanStart; with more ranks than cores also that warning, and what --dry_run would find wrong with `root`, in a
// process of its own: this one keeps free of threads. Many processes that all find out by themselves are as good as
// none on this machine, for everybody.
absl::Status CheckLaunch(const ConfigNode& root, const RunWorld& world, const Registries& registries);

}  // namespace ssl

#endif  // SSL_TOOLS_LAUNCH_CHECK_H_
