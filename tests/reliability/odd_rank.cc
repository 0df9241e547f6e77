// SPDX-License-Identifier: Apache-2.0
//
// A rank that does nothing but reduce, without end, for rank_torture.py. One of them calls another operation once:
//
//   odd_rank same|kind|shape CALL
//
// where CALL counts from 0. It finds its place as ssl_main does, by RANK and WORLD_SIZE, and ends with ssl_main's code.
#include <ATen/ops/ones.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/world_options.h"
#include "ssl/distributed/environment_reader.h"
#include "ssl/distributed/launch_environment.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/join_world.h"

namespace ssl {
namespace {

absl::Status CallAnother(const std::string& what, Communicator& communicator) {
  std::cout << "the other operation is next" << std::endl;
  at::Tensor tensor = at::ones({what == "shape" ? 9 : 8});
  return what == "shape" ? communicator.AllReduce(tensor, ReduceOp::kSum) : communicator.AllGather(tensor).status();
}

// Returns when a call fails.
absl::Status Reduce(const std::string& what, int64_t odd_call) {
  SSL_ASSIGN_OR_RETURN(const WorldPlace place, FindWorldPlace(ProcessVariable));
  WorldOptions options;
  options.timeout_seconds = 10;
  SSL_ASSIGN_OR_RETURN(const JoinedWorld world, JoinWorld(place, options));
  for (int64_t call = 0;; ++call) {
    if (what != "same" && call == odd_call) {
      SSL_RETURN_IF_ERROR(CallAnother(what, *world.communicator));
      continue;
    }
    at::Tensor tensor = at::ones({8});
    SSL_RETURN_IF_ERROR(world.communicator->AllReduce(tensor, ReduceOp::kSum));
  }
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  if (argc != 3) return ssl::kExitConfiguration;
  const absl::Status status = ssl::Reduce(argv[1], std::atoll(argv[2]));
  std::cerr << status.message() << std::endl;
  return ssl::ExitCodeOf(status);
}
