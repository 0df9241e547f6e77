// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/communicator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

class FinishedWork : public Work {
 public:
  explicit FinishedWork(absl::Status status) : status_(std::move(status)) {}
  absl::Status Wait() override { return status_; }

 private:
  const absl::Status status_;
};

}  // namespace

std::unique_ptr<Work> Communicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  return std::make_unique<FinishedWork>(AllReduce(tensor, op));
}

absl::Status Communicator::CheckRows(const at::Tensor& tensor) const {
  if (tensor.dim() > 0 && tensor.size(0) == size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("reduce-scatter of a tensor of shape [",
                                                 absl::StrJoin(tensor.sizes(), ", "), "], expected ", size(),
                                                 " rows, one for each rank"));
}

absl::StatusOr<at::Tensor> Communicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  SSL_RETURN_IF_ERROR(CheckRows(tensor));
  at::Tensor rows = tensor.detach().clone();
  SSL_RETURN_IF_ERROR(AllReduce(rows, op));
  return rows.select(0, rank());
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(int64_t color) {
  return absl::UnimplementedError("this world cannot be split into groups of ranks");
}

}  // namespace ssl
