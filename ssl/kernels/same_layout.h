// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_KERNELS_SAME_LAYOUT_H_
#define SSL_KERNELS_SAME_LAYOUT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// Whether equal positions in memory hold equal elements of two tensors; strides of dimensions of one element say
// nothing, and differ between a kernel of 1 x 1 and its gradient.
inline bool SameLayout(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != b.size(d) || (a.size(d) > 1 && a.stride(d) != b.stride(d))) return false;
  }
  return true;
}

}  // namespace ssl

#endif  // SSL_KERNELS_SAME_LAYOUT_H_
