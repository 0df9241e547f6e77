// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/reduce_rows.h"

namespace ssl {

at::Tensor ReduceRows(const at::Tensor& rows, ReduceOp op) {
  if (op == ReduceOp::kMax) return rows.amax(0);
  at::Tensor sum = rows.sum(0);
  if (op == ReduceOp::kMean && rows.scalar_type() != at::kBool) {
    sum = sum.is_floating_point() || sum.is_complex() ? sum.div(rows.size(0)) : sum.div(rows.size(0), "trunc");
  }
  return sum.to(rows.scalar_type());
}

}  // namespace ssl
