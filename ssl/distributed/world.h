// SPDX-License-Identifier: Apache-2.0
//
// From a place in a world to the communicator of its ranks.
//
//   SSL_ASSIGN_OR_RETURN(const WorldPlace place, FindWorldPlace(ProcessVariable));
//   SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, OpenWorld(place, {}));
#ifndef SSL_DISTRIBUTED_WORLD_H_
#define SSL_DISTRIBUTED_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/launch_environment.h"

namespace ssl {

struct WorldTimeouts {
  absl::Duration connect = absl::Minutes(5);     // until all ranks have come
  absl::Duration operation = absl::Minutes(10);  // of a collective operation, for the other ranks
};

// Where its ranks meet, for messages: "gpu1:29500", "a free port of this host", a file.
std::string MeetingPlace(const WorldPlace& place);

// What tensors of GPUs go over; those of the CPU go over Gloo.
enum class GpuBackend { kNccl, kGloo };

// A world of one has neither sockets nor threads. A program without NCCL has no tensors of NVIDIA GPUs, so that kNccl
// is right for it, too. Collective; the errors of MakeGlooCommunicator.
absl::StatusOr<std::unique_ptr<Communicator>> OpenWorld(const WorldPlace& place, const WorldTimeouts& timeouts,
                                                        GpuBackend backend = GpuBackend::kNccl);

// How many ranks each host has; 1 where not all have as many, as if each rank had a host of its own: the same on every
// rank. InvalidArgument, on all ranks, where their places contradict each other: a host of N ranks has each number
// below N once. Collective.
absl::StatusOr<int64_t> RanksPerHost(const WorldPlace& place, Communicator& communicator);

// How many ranks are on this machine, or in this container, whatever their places say; at least 1. Collective.
absl::StatusOr<int64_t> RanksOnThisHost(Communicator& communicator);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_WORLD_H_
