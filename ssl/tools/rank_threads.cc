// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/rank_threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace ssl {

Cores CoresOfThisProcess() {
  Cores cores;
  cores.online = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
  cores.open = cores.online;
  cpu_set_t open;
  if (sched_getaffinity(0, sizeof(open), &open) == 0) cores.open = CPU_COUNT(&open);
  return cores;
}

std::optional<int64_t> RankThreads(const WorldPlace& place, int64_t ranks_here, const Cores& cores,
                                   const EnvironmentVariable& variable) {
  if (!variable("OMP_NUM_THREADS").value_or("").empty() || cores.open < cores.online) return std::nullopt;
  // A scheduler without a plug-in that binds tasks counts on each to keep to what it asked for.
  if (place.cores > 0) return std::min(place.cores, cores.online);
  if (ranks_here <= 1) return std::nullopt;
  return std::max<int64_t>(1, cores.online / ranks_here);
}

}  // namespace ssl
