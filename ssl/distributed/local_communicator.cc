// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/local_communicator.h"

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

class LocalCommunicator : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override { return absl::OkStatus(); }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return tensor.unsqueeze(0); }

  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    if (root == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("broadcast root is ", root, ", expected 0 in a world of 1"));
  }

  absl::Status Barrier() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return MakeLocalCommunicator(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override { return MakeLocalCommunicator(); }
};

}  // namespace

std::unique_ptr<Communicator> MakeLocalCommunicator() { return std::make_unique<LocalCommunicator>(); }

}  // namespace ssl
