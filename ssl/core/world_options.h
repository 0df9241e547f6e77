// SPDX-License-Identifier: Apache-2.0
//
// The keys of DISTRIBUTED that say how many ranks there are, on which processes, and where those meet. The program that
// starts or connects processes reads them; the session is handed a communicator.
#ifndef SSL_CORE_WORLD_OPTIONS_H_
#define SSL_CORE_WORLD_OPTIONS_H_

#include <cstdint>
#include <string>

#include "ssl/config/fields.h"

namespace ssl {

// A run is one of as many ranks, and goes on wherever they are; virtual ranks on whatever processes.
struct WorldOptions : public Options {
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  int64_t virtual_ranks = 0;  // 0: each process is a rank
  int64_t threads_per_virtual_rank = 1;
  std::string init_method = "tcp";
  std::string run_id = "auto";
  std::string backend = "nccl";
  bool nccl_debug = false;
  std::string nccl_socket_threads;  // "" leaves it to NCCL
  int64_t connect_seconds = 300;
  int64_t timeout_seconds = 600;
  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_CORE_WORLD_OPTIONS_H_
