// SPDX-License-Identifier: Apache-2.0
//
// Updates of many ranks in virtual time: the threads run this project's GradientReducer and Sinkhorn, with a backward
// pass of LibTorch's autograd, over a Communicator that moves no data but tells each rank what time it is when an
// operation ends. What is computed only moves a rank's clock. Nothing sleeps, and the same seed gives the same times.
//
// Tensors are kSmaller times smaller than the workload's and count as much larger.
#ifndef SSL_TESTS_SCALING_SIMULATED_UPDATE_H_
#define SSL_TESTS_SCALING_SIMULATED_UPDATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/scaling/cluster.h"
#include "tests/scaling/workload.h"

namespace ssl {

inline constexpr int64_t kSmaller = 256;

struct SimulatedUpdate {
  double seconds = 0.0;              // mean of the updates
  std::vector<double> bucket_bytes;  // what the reducer has reduced in an update, in its order
};

absl::StatusOr<SimulatedUpdate> SimulateUpdates(const Cluster& cluster, const Workload& workload, int64_t updates,
                                                uint64_t seed);

}  // namespace ssl

#endif  // SSL_TESTS_SCALING_SIMULATED_UPDATE_H_
