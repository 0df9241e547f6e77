// SPDX-License-Identifier: Apache-2.0
//
// The steps around an operation of c10d that its backends have in common: what becomes of a tensor before and after.
// May throw LibTorch exceptions.
#ifndef SSL_DISTRIBUTED_EXCHANGE_STEPS_H_
#define SSL_DISTRIBUTED_EXCHANGE_STEPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// The type in which tensors of `type` are reduced: integers in int64, as at::sum does, so that a mean does not
// overflow.
at::ScalarType ReducedType(at::ScalarType type);

// What a backend can work on: flat and contiguous on `device`. Without a copy where `tensor` is that already.
at::Tensor Flat(const at::Tensor& tensor, at::ScalarType type, at::Device device);

// Any type as bytes, for operations that only move them.
at::Tensor FlatBytes(const at::Tensor& tensor, at::Device device);

// Nothing where `flat` is the tensor itself.
void CopyBack(const at::Tensor& flat, at::Tensor& tensor);

// "all-reduce (sum)".
const char* NameOf(ReduceOp op);

// What follows the exchange of an all-reduce between `size` ranks: `flat` is the sum or the maximum.
void Conclude(const at::Tensor& flat, ReduceOp op, int64_t size, at::Tensor& tensor);

// InvalidArgument unless `root` is a rank.
absl::Status CheckRoot(int64_t root, int64_t size);

// " of Float [2, 3]".
std::string TypeAndShape(const at::Tensor& tensor);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_EXCHANGE_STEPS_H_
