// SPDX-License-Identifier: Apache-2.0
//
// A Communicator that passes everything on, and notes how long its operations take: the time that this rank waits for
// others. A rank that takes its turn among virtual ranks (virtual_world.h) waits for it inside operations, too.
//
//   TimedCommunicator communicator(base);
//   context.perf_stats.LeaveOut(communicator.waiting());
//
// Duplicates and groups note theirs in the same place, because parts of a step (the reducer of gradients, batch norm
// over ranks) have one of their own. So a thread that works beside the steps has to duplicate `base` instead. They are
// made, destroyed and aborted by one thread.
#ifndef SSL_CORE_TIMED_COMMUNICATOR_H_
#define SSL_CORE_TIMED_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/perf_stats.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

class TimedCommunicator : public Communicator {
 public:
  // base: outlives it.
  explicit TimedCommunicator(Communicator& base) : base_(base), family_(std::make_shared<Family>()) {}

  const WaitingTime& waiting() const { return family_->waiting; }

  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override;
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override;
  absl::Status Barrier() override;
  void LetOthersGoOn(absl::FunctionRef<void()> wait) override;
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override;
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override;

  // That of the base, and of all duplicates and groups that were made by this one or by one of them.
  void Abort(const absl::Status& why) override;

 private:
  class Owning;

  // What a communicator and those that were made by it have in common.
  struct Family {
    WaitingTime waiting;
    std::vector<Communicator*> made;  // those that live, below their timing
  };

  TimedCommunicator(Communicator& base, std::shared_ptr<Family> family) : base_(base), family_(std::move(family)) {}

  Communicator& base_;
  const std::shared_ptr<Family> family_;
};

}  // namespace ssl

#endif  // SSL_CORE_TIMED_COMMUNICATOR_H_
