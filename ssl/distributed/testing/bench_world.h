// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a benchmark as processes of this machine, forked from its own.
#ifndef SSL_DISTRIBUTED_TESTING_BENCH_WORLD_H_
#define SSL_DISTRIBUTED_TESTING_BENCH_WORLD_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "ssl/distributed/gloo_communicator.h"

namespace ssl {

// Runs `rank_main` in `size` new processes, with options that are ready for MakeGlooCommunicator; a rank's error is
// printed. Returns the exit code of the program: 0 when all ranks were OK. For the main thread, before anything of
// LibTorch runs: threads of its pools would be missing in the ranks.
int RunForkedRanks(int64_t size, const std::function<absl::Status(const GlooOptions& options)>& rank_main);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_BENCH_WORLD_H_
