// SPDX-License-Identifier: Apache-2.0
//
// A world of V virtual ranks on W processes, where W divides V: process p has the ranks p * V/W to (p + 1) * V/W - 1,
// as threads that take turns. One runs until it waits for the others in an operation; then the next one does.
//
//   VirtualWorld world(4, *processes);
//   return world.Run([&](Communicator& communicator) { return Train(communicator); });   // once for each virtual rank
//
// What a rank computes depends on V and not on W, bit by bit, as long as each process computes with the same number of
// threads: sums are added in the order of the virtual ranks, wherever those are, and while a rank has its turn
// LibTorch's generator of the CPU is its own. A duplicate of a rank's communicator may be used by another thread, which
// needs no turn; it must not draw from that generator.
//
// The price: all virtual ranks of a process have their own copy of everything, they compute one after the other, and a
// reduction moves what all virtual ranks have to every process instead of sums.
#ifndef SSL_DISTRIBUTED_VIRTUAL_WORLD_H_
#define SSL_DISTRIBUTED_VIRTUAL_WORLD_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

class VirtualWorld {
 public:
  // processes: of the W processes; outlives the world. virtual_ranks: the same on all of them.
  VirtualWorld(int64_t virtual_ranks, Communicator& processes) : virtual_ranks_(virtual_ranks), processes_(processes) {}

  // Calls `rank_main` for each virtual rank of this process, each on a thread of its own, and returns when all have
  // returned: the error that was first. A rank that waits for one of this process that has ended gets Unavailable.
  // InvalidArgument when the processes do not divide the ranks. Collective over the processes.
  absl::Status Run(const std::function<absl::Status(Communicator&)>& rank_main) const;

 private:
  const int64_t virtual_ranks_;
  Communicator& processes_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_VIRTUAL_WORLD_H_
