// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/preview_communicator.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

class PreviewCommunicator : public Communicator {
 public:
  explicit PreviewCommunicator(int64_t size) : size_(size) {}

  int64_t rank() const override { return 0; }
  int64_t size() const override { return size_; }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    if (op == ReduceOp::kSum && tensor.scalar_type() != at::kBool) tensor.detach().mul_(size_);
    return absl::OkStatus();
  }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape.insert(shape.begin(), size_);
    return tensor.detach().unsqueeze(0).expand(shape).contiguous();
  }

  absl::Status Broadcast(at::Tensor&, int64_t root) override {
    if (root >= 0 && root < size_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("broadcast root is ", root, ", expected 0 to ", size_ - 1, " in a world of ", size_));
  }

  absl::Status Barrier() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return MakePreviewCommunicator(size_); }

  // What the others would pass is not known: all the same, as everything else.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t) override { return MakePreviewCommunicator(size_); }

 private:
  const int64_t size_;
};

}  // namespace

std::unique_ptr<Communicator> MakePreviewCommunicator(int64_t size) {
  return std::make_unique<PreviewCommunicator>(size);
}

}  // namespace ssl
