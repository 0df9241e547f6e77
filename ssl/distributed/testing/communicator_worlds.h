// SPDX-License-Identifier: Apache-2.0
//
// The worlds that the suite of all communicators runs in: communicator_test.cc.
#ifndef SSL_DISTRIBUTED_TESTING_COMMUNICATOR_WORLDS_H_
#define SSL_DISTRIBUTED_TESTING_COMMUNICATOR_WORLDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct CommunicatorWorld {
  std::string name;
  int64_t size;
  // Calls the function on every rank.
  std::function<absl::Status(const std::function<absl::Status(Communicator&)>&)> run;
};

// In a program that links communicator_worlds; of GPUs in one that links communicator_gpu_worlds.
std::vector<CommunicatorWorld> CommunicatorWorlds();

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_COMMUNICATOR_WORLDS_H_
