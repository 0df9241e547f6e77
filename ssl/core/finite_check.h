// SPDX-License-Identifier: Apache-2.0
//
// Counts the infinities and NaN of a tensor at the speed of memory: the exponent bits tell, and no temporary is made.
// Pure, thread-safe.
#ifndef SSL_CORE_FINITE_CHECK_H_
#define SSL_CORE_FINITE_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// 0 for tensors of whole numbers, undefined and empty ones. Copies a tensor that is not on the CPU, or whose values do
// not lie together. May throw LibTorch exceptions.
int64_t CountNonFinite(const at::Tensor& tensor);

}  // namespace ssl

#endif  // SSL_CORE_FINITE_CHECK_H_
