// SPDX-License-Identifier: Apache-2.0
//
// Counts the infinities and NaN of a tensor at the speed of memory: the exponent bits tell, and no temporary is made.
// Pure, thread-safe.
#ifndef SSL_CORE_FINITE_CHECK_H_
#define SSL_CORE_FINITE_CHECK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ssl {

// 0 for tensors of whole numbers, undefined and empty ones. Copies a tensor that is not on the CPU, or whose values do
// not lie together. May throw LibTorch exceptions.
int64_t CountNonFinite(const at::Tensor& tensor);

// [tensors] bool, on their device, without a read: which hold an infinity or NaN. All lie on one device and have
// floating point numbers, at least one. May throw LibTorch exceptions.
at::Tensor NonFiniteFlags(const std::vector<at::Tensor>& tensors);

// Of each tensor whether CountNonFinite is above 0; one read for all that are on an accelerator. May throw LibTorch
// exceptions.
std::vector<bool> HaveNonFinite(const std::vector<at::Tensor>& tensors);

}  // namespace ssl

#endif  // SSL_CORE_FINITE_CHECK_H_
