// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/counting_communicator.h"

#include <utility>

#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

class OwningCommunicator : public CountingCommunicator {
 public:
  OwningCommunicator(std::unique_ptr<Communicator> base, CollectiveCounts* counts)
      : CountingCommunicator(*base, counts), owned_(std::move(base)) {}

 private:
  const std::unique_ptr<Communicator> owned_;
};

}  // namespace

void CollectiveCounts::Add(const std::string& kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[kind];
}

void CollectiveCounts::AddReduced(const at::Tensor& tensor) {
  Add("all-reduce");
  const std::lock_guard<std::mutex> lock(mutex_);
  reduced_.push_back(tensor);
}

std::vector<at::Tensor> CollectiveCounts::TakeReduced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(reduced_, {});
}

std::map<std::string, int64_t> CollectiveCounts::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(counts_, {});
}

absl::Status CountingCommunicator::AllReduce(at::Tensor& tensor, ReduceOp op) {
  counts_.AddReduced(tensor);
  return base_.AllReduce(tensor, op);
}

std::unique_ptr<Work> CountingCommunicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  counts_.AddReduced(tensor);
  return base_.StartAllReduce(tensor, op);
}

absl::StatusOr<at::Tensor> CountingCommunicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  counts_.Add("reduce-scatter");
  return base_.ReduceScatter(tensor, op);
}

absl::StatusOr<at::Tensor> CountingCommunicator::AllGather(const at::Tensor& tensor) {
  counts_.Add("all-gather");
  return base_.AllGather(tensor);
}

absl::Status CountingCommunicator::Broadcast(at::Tensor& tensor, int64_t root) {
  counts_.Add("broadcast");
  return base_.Broadcast(tensor, root);
}

absl::Status CountingCommunicator::Barrier() {
  counts_.Add("barrier");
  return base_.Barrier();
}

absl::StatusOr<std::unique_ptr<Communicator>> CountingCommunicator::Duplicate() {
  counts_.Add("duplicate");
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> duplicate, base_.Duplicate());
  return std::make_unique<OwningCommunicator>(std::move(duplicate), &counts_);
}

absl::StatusOr<std::unique_ptr<Communicator>> CountingCommunicator::Split(int64_t color) {
  counts_.Add("split");
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, base_.Split(color));
  return std::make_unique<OwningCommunicator>(std::move(group), &counts_);
}

}  // namespace ssl
