// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/exchange_steps.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ssl {

at::ScalarType ReducedType(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? at::kLong : type;
}

at::Tensor Flat(const at::Tensor& tensor, at::ScalarType type, at::Device device) {
  return tensor.detach().to(device, type).contiguous().view({-1});
}

at::Tensor FlatBytes(const at::Tensor& tensor, at::Device device) {
  return Flat(tensor, tensor.scalar_type(), device).view(at::kByte);
}

void CopyBack(const at::Tensor& flat, at::Tensor& tensor) {
  if (!flat.is_alias_of(tensor)) tensor.detach().copy_(flat.view(tensor.sizes()));
}

const char* NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "all-reduce (sum)";
    case ReduceOp::kMax:
      return "all-reduce (maximum)";
    case ReduceOp::kMean:
      return "all-reduce (mean)";
  }
  return "all-reduce";
}

void Conclude(const at::Tensor& flat, ReduceOp op, int64_t size, at::Tensor& tensor) {
  if (op == ReduceOp::kMean && tensor.scalar_type() != at::kBool) {
    flat.is_floating_point() ? flat.div_(size) : flat.div_(size, "trunc");
  }
  CopyBack(flat, tensor);
}

absl::Status CheckRoot(int64_t root, int64_t size) {
  if (root >= 0 && root < size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("broadcast root is ", root, ", expected 0 to ", size - 1, " in a world of ", size));
}

std::string TypeAndShape(const at::Tensor& tensor) {
  return absl::StrCat(" of ", at::toString(tensor.scalar_type()), " [", absl::StrJoin(tensor.sizes(), ", "), "]");
}

}  // namespace ssl
