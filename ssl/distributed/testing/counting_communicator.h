// SPDX-License-Identifier: Apache-2.0
//
// A Communicator that passes everything on and counts it.
//
//   CollectiveCounts counts;
//   CountingCommunicator communicator(base, &counts);
//   ...
//   EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", 2)));
#ifndef SSL_DISTRIBUTED_TESTING_COUNTING_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_TESTING_COUNTING_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Of one rank, by kind: "all-reduce" (started or not), "all-gather", "barrier", "broadcast", "duplicate",
// "reduce-scatter", "split". Thread-safe.
class CollectiveCounts {
 public:
  void Add(const std::string& kind);
  void AddReduced(const at::Tensor& tensor);
  // What was counted since the last call.
  std::map<std::string, int64_t> Take();
  // The tensors of the all-reduces since the last call, in the order of their calls.
  std::vector<at::Tensor> TakeReduced();

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
  std::vector<at::Tensor> reduced_;
};

// Its duplicates and groups count as well, in the same place. `base` and `counts` outlive it.
class CountingCommunicator : public Communicator {
 public:
  CountingCommunicator(Communicator& base, CollectiveCounts* counts) : base_(base), counts_(*counts) {}

  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override;
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override;
  absl::Status Barrier() override;
  void LetOthersGoOn(absl::FunctionRef<void()> wait) override { base_.LetOthersGoOn(wait); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override;
  void Abort(const absl::Status& why) override { base_.Abort(why); }

 private:
  Communicator& base_;
  CollectiveCounts& counts_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_COUNTING_COMMUNICATOR_H_
