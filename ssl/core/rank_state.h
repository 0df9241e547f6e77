// SPDX-License-Identifier: Apache-2.0
//
// What of the ranks' states a checkpoint holds: rank 0's whole, and of every other rank what is not rank 0's, bit by
// bit. Weights, optimizer, averages and gathered queues are there once, running statistics and queues of a rank's own
// for each rank, and no part of a run has to say which it is: as many ranks restore what they had.
//
// State that only one rank walks (the momenta of the parameters that it updates) is there once, in the file of that
// rank. A restore finds it by its name, whoever walks it then. With another number of ranks, what each rank had for
// itself goes on as declared (StateVisitor::RanksDiffer), and all else is rank 0's.
//
//   save:     own = StateOfItsOwn(state, communicator), written to the file of this rank
//   restore:  SavedRanks saved(4, read_file_of_rank);
//             state = saved.StateOf(walked, communicator), handed to RestoreState
#ifndef SSL_CORE_RANK_STATE_H_
#define SSL_CORE_RANK_STATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// On rank 0 all of `state`. On others the entries that rank 0 lacks, and those whose type, shape or bytes differ from
// those of rank 0, by CRC-32C. Collective.
absl::StatusOr<std::vector<NamedTensor>> StateOfItsOwn(std::vector<NamedTensor> state, Communicator& communicator);

// The states of the ranks that saved a checkpoint.
class SavedRanks {
 public:
  // What StateOfItsOwn gave on a rank that saved.
  using Read = std::function<absl::StatusOr<std::vector<NamedTensor>>(int64_t rank)>;

  // count: of the ranks that saved, at least 1. Reads nothing yet.
  SavedRanks(int64_t count, Read read);

  // The state of this rank, which walks `walked`. A name that nobody has saved is left out; one that no rank walks is
  // in the state of rank 0, where RestoreState names it. DataLoss when the ranks that saved contradict each other,
  // InvalidArgument when rows cannot be dealt out to so many ranks; an error is one on all ranks. Collective.
  absl::StatusOr<std::vector<NamedTensor>> StateOf(const WalkedState& walked, Communicator& communicator);

  // What StateOf, called before, did for another number of ranks, in one sentence; "" for the same.
  std::string DescribeChange(const WalkedState& walked, const Communicator& communicator) const;

 private:
  using Entries = std::unordered_map<std::string, at::Tensor>;

  absl::StatusOr<const Entries*> OfRank(int64_t rank);
  // Undefined when no rank has it.
  absl::StatusOr<at::Tensor> Find(const std::string& name);
  absl::StatusOr<at::Tensor> ValueFor(const WalkedState& walked, const std::string& name,
                                      const Communicator& communicator);
  absl::StatusOr<at::Tensor> Combined(const std::string& name, const RanksDifference& difference,
                                      const Communicator& communicator);
  absl::StatusOr<std::vector<NamedTensor>> LocalState(const WalkedState& walked, const Communicator& communicator);
  absl::StatusOr<std::vector<NamedTensor>> NotWalkedHere(const WalkedState& walked);

  const int64_t count_;
  const Read read_;
  std::unordered_map<int64_t, Entries> read_ranks_;
};

}  // namespace ssl

#endif  // SSL_CORE_RANK_STATE_H_
