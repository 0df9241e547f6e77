// SPDX-License-Identifier: Apache-2.0
//
// The reduction of what all ranks have passed, where one rank holds it all. Pure; may throw LibTorch exceptions.
#ifndef SSL_DISTRIBUTED_REDUCE_ROWS_H_
#define SSL_DISTRIBUTED_REDUCE_ROWS_H_

#include <ATen/core/Tensor.h>

#include "ssl/distributed/communicator.h"

namespace ssl {

// rows: [ranks, ...], at least one. Returns [...] of the same type: row 0, then 1, and so on, in that order on every
// rank. Integers are added in int64; of bool the sum and the mean are whether any is true.
at::Tensor ReduceRows(const at::Tensor& rows, ReduceOp op);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_REDUCE_ROWS_H_
