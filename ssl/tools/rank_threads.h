// SPDX-License-Identifier: Apache-2.0
//
// With how many threads a rank computes, beside others on the same cores. Pure but for CoresOfThisProcess; thread-safe.
#ifndef SSL_TOOLS_RANK_THREADS_H_
#define SSL_TOOLS_RANK_THREADS_H_

#include <cstdint>
#include <optional>

#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/launch_environment.h"

namespace ssl {

struct Cores {
  int64_t online = 1;  // of this host
  int64_t open = 1;    // to this process
};

Cores CoresOfThisProcess();

// ranks_here: on this host, whoever started them. Nothing, for as many threads as LibTorch takes by itself, where
// OMP_NUM_THREADS says how many, where the rank is bound to some of the cores, as srun and mpirun bind theirs, and
// where it has the host for itself. Else the cores that the scheduler gave it (WorldPlace::cores), or its share of the
// host's; at least 1.
std::optional<int64_t> RankThreads(const WorldPlace& place, int64_t ranks_here, const Cores& cores,
                                   const EnvironmentVariable& variable);

}  // namespace ssl

#endif  // SSL_TOOLS_RANK_THREADS_H_
