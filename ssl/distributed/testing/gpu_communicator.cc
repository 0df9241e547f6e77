// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/gpu_communicator.h"

#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

class StartedOnDevice : public Work {
 public:
  StartedOnDevice(Communicator& base, const at::Tensor& tensor, at::Device device, ReduceOp op)
      : tensor_(tensor), moved_(tensor.detach().to(device)), work_(base.StartAllReduce(moved_, op)) {}

  absl::Status Wait() override {
    SSL_RETURN_IF_ERROR(work_->Wait());
    tensor_.detach().copy_(moved_);
    return absl::OkStatus();
  }

 private:
  at::Tensor tensor_;
  at::Tensor moved_;
  const std::unique_ptr<Work> work_;
};

// What an operation on a tensor of the device returns is on it, too.
absl::StatusOr<at::Tensor> OnHost(const absl::StatusOr<at::Tensor>& result, at::Device device) {
  SSL_RETURN_IF_ERROR(result.status());
  if (result->device() != device) return absl::InternalError("the result of an operation is on another device");
  return result->cpu();
}

}  // namespace

absl::Status GpuCommunicator::AllReduce(at::Tensor& tensor, ReduceOp op) {
  at::Tensor moved = tensor.detach().to(device_);
  SSL_RETURN_IF_ERROR(base_.AllReduce(moved, op));
  tensor.detach().copy_(moved);
  return absl::OkStatus();
}

std::unique_ptr<Work> GpuCommunicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  return std::make_unique<StartedOnDevice>(base_, tensor, device_, op);
}

absl::StatusOr<at::Tensor> GpuCommunicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  return OnHost(base_.ReduceScatter(tensor.to(device_), op), device_);
}

absl::StatusOr<at::Tensor> GpuCommunicator::AllGather(const at::Tensor& tensor) {
  return OnHost(base_.AllGather(tensor.to(device_)), device_);
}

absl::Status GpuCommunicator::Broadcast(at::Tensor& tensor, int64_t root) {
  at::Tensor moved = tensor.detach().to(device_);
  SSL_RETURN_IF_ERROR(base_.Broadcast(moved, root));
  tensor.detach().copy_(moved);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Communicator>> GpuCommunicator::OnDevice(
    absl::StatusOr<std::unique_ptr<Communicator>> base) const {
  SSL_RETURN_IF_ERROR(base.status());
  return std::unique_ptr<Communicator>(new GpuCommunicator(*std::move(base), device_));
}

}  // namespace ssl
