// SPDX-License-Identifier: Apache-2.0
//
// VISSL's own way to place ranks: the same command on every host, with the number of the host, and as many processes on
// each as the keys of DISTRIBUTED say. Stateless; safe from any thread.
#ifndef SSL_DISTRIBUTED_NODE_OPTIONS_H_
#define SSL_DISTRIBUTED_NODE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/launch_environment.h"

namespace ssl {

struct NodeOptions {
  int64_t nodes = 1;            // DISTRIBUTED.NUM_NODES, at least 1
  int64_t ranks_per_node = 1;   // DISTRIBUTED.NUM_PROC_PER_NODE, at least 1
  std::optional<int64_t> node;  // this host's number; not set: SLURM_NODEID where SLURM_STEP_NODELIST is set, else 0
  std::string init_method = "tcp";  // DISTRIBUTED.INIT_METHOD: tcp, env or file
  std::string run_id = "auto";      // DISTRIBUTED.RUN_ID
};

// The place of the first rank of this host, node * ranks_per_node; the others follow it (ssl/launch starts them). What
// the options say goes before the environment. RUN_ID by INIT_METHOD:
// - tcp: "HOST:PORT" of the first host. "auto", with one host only: port is 0, for whoever starts the ranks to choose.
// - file: a path that all ranks reach, in store_file. It has to be new in each run: c10d's FileStore goes on with what
// it
//   finds. "auto" is that of tcp, which needs no file.
// - env: not read; MASTER_ADDR and MASTER_PORT of the environment. VISSL allows one host only, here all may.
// Unimplemented, with the tokens that run it here, for several hosts without a first one: "auto", or a text that stands
// for a HOST:PORT to come. InvalidArgument, with the key, its value and what was expected, for anything else.
absl::StatusOr<WorldPlace> PlaceFromOptions(const NodeOptions& options, const EnvironmentVariable& variable);

// InvalidArgument, with the ways out, where srun has started one task on each of several nodes, and the options ask for
// more ranks on a node: such a task is one rank, and the others would be missing without a word. It is not made the
// launcher of its node, because a signal of SLURM's to the step would reach the ranks twice.
absl::Status CheckTasks(const WorldPlace& place, const NodeOptions& options, const EnvironmentVariable& variable);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_NODE_OPTIONS_H_
