// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/fault_counts.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "ssl/base/status_macros.h"

namespace ssl {

std::array<int64_t, kNumReadFaults> CountFaults(const std::map<int64_t, ReadFault>& images) {
  std::array<int64_t, kNumReadFaults> counts{};
  for (const auto& [index, fault] : images) ++counts[static_cast<int>(fault)];
  return counts;
}

absl::Status JoinFaults(Communicator& communicator, std::map<int64_t, ReadFault>* images) {
  if (communicator.size() == 1) return absl::OkStatus();
  at::Tensor most = at::full({1}, static_cast<int64_t>(images->size()), at::kLong);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(most, ReduceOp::kMax));
  const int64_t rows = most.item<int64_t>();
  if (rows == 0) return absl::OkStatus();
  at::Tensor own = at::full({rows, 2}, -1, at::kLong);
  int64_t* next = own.mutable_data_ptr<int64_t>();
  for (const auto& [index, fault] : *images) {
    *next++ = index;
    *next++ = static_cast<int64_t>(fault);
  }
  SSL_ASSIGN_OR_RETURN(at::Tensor all, communicator.AllGather(own));
  all = all.reshape({-1, 2}).contiguous();
  const int64_t* values = all.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < all.size(0); ++row, values += 2) {
    if (values[0] >= 0) (*images)[values[0]] = static_cast<ReadFault>(values[1]);
  }
  return absl::OkStatus();
}

}  // namespace ssl
