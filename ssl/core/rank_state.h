// SPDX-License-Identifier: Apache-2.0
//
// What of the ranks' states a checkpoint holds: rank 0's whole, and of every other rank what is not rank 0's, bit by
// bit. Weights, optimizer, averages and gathered queues are there once, running statistics, generators and queues of a
// rank's own for each rank, and no part of a run has to say which it is: what a rank restores is what it had.
#ifndef SSL_CORE_RANK_STATE_H_
#define SSL_CORE_RANK_STATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// On rank 0 all of `state`. On others the entries whose type, shape or bytes differ from those of rank 0, by CRC-32C;
// all of them when rank 0 has other names, or the same in another order. Collective.
absl::StatusOr<std::vector<NamedTensor>> StateOfItsOwn(std::vector<NamedTensor> state, Communicator& communicator);

// The state of a rank that walks `walked`: its `own` entries, and rank 0's for the other names that it walks. A name
// that neither has is left out.
std::vector<NamedTensor> OverRankZero(const std::vector<NamedTensor>& rank_zero, std::vector<NamedTensor> own,
                                      const std::vector<NamedTensor>& walked);

}  // namespace ssl

#endif  // SSL_CORE_RANK_STATE_H_
