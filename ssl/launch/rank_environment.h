// SPDX-License-Identifier: Apache-2.0
//
// The environment of a rank that is started on this host: that of the launcher with the variables that torchrun sets,
// so that any program which runs under torchrun runs under this launcher. Pure; thread-safe.
#ifndef SSL_LAUNCH_RANK_ENVIRONMENT_H_
#define SSL_LAUNCH_RANK_ENVIRONMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/distributed/launch_environment.h"

namespace ssl {

// `inherited` holds "NAME=VALUE", and so does the result. `first` is the place of the first rank of this host
// (local_rank 0), of which rank, size, local_size, host, port, store_file, listening_socket and restart_count are read.
// Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT,
// TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS, TORCHELASTIC_USE_AGENT_STORE to False, because rank 0 serves
// the store, and SSL_LAUNCHER, for messages. With a store_file, SSL_STORE_FILE is that instead of MASTER_ADDR and
// MASTER_PORT. SSL_LISTENING_SOCKET is first.listening_socket for rank 0 when there is one, and is taken away
// otherwise. OMP_NUM_THREADS, unless it is inherited, is the rank's share of `cores`, at least 1: each rank would take
// all of them.
std::vector<std::string> RankEnvironment(const std::vector<std::string>& inherited, const WorldPlace& first,
                                         int64_t local_rank, int64_t max_restarts, int64_t cores);

}  // namespace ssl

#endif  // SSL_LAUNCH_RANK_ENVIRONMENT_H_
