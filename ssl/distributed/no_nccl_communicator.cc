// SPDX-License-Identifier: Apache-2.0
//
// What nccl_communicator.h is in a program for CPUs.
#include "ssl/distributed/nccl_communicator.h"

namespace ssl {

bool HasNccl() { return false; }

absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(const GlooOptions& options) {
  return absl::UnimplementedError(
      "this program is for CPUs and has no NCCL: build it with --config=cuda, or let ranks talk by gloo");
}

}  // namespace ssl
