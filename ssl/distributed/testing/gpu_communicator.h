// SPDX-License-Identifier: Apache-2.0
//
// A Communicator whose tensors are on the CPU and travel as tensors of a GPU: what a test has written for the CPU is
// done by the operations for GPUs.
#ifndef SSL_DISTRIBUTED_TESTING_GPU_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_TESTING_GPU_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "ssl/distributed/communicator.h"

namespace ssl {

class GpuCommunicator : public Communicator {
 public:
  // `base` outlives it.
  GpuCommunicator(Communicator& base, at::Device device) : base_(base), device_(device) {}

  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override;
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override;
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override;
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override;
  absl::Status Barrier() override { return base_.Barrier(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return OnDevice(base_.Duplicate()); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override { return OnDevice(base_.Split(color)); }
  void Abort(const absl::Status& why) override { base_.Abort(why); }

 private:
  GpuCommunicator(std::unique_ptr<Communicator> base, at::Device device)
      : owned_(std::move(base)), base_(*owned_), device_(device) {}

  absl::StatusOr<std::unique_ptr<Communicator>> OnDevice(absl::StatusOr<std::unique_ptr<Communicator>> base) const;

  const std::unique_ptr<Communicator> owned_;
  Communicator& base_;
  const at::Device device_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_GPU_COMMUNICATOR_H_
