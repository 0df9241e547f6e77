// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/finite_check.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <cstddef>
#include <limits>

namespace ssl {
namespace {

// A value is infinite or NaN when all bits of its exponent are set.
template <class Bits>
int64_t Count(const void* data, int64_t size, Bits exponent) {
  // Whole blocks of a fixed length are what the compiler turns into vector instructions.
  constexpr int64_t kBlock = 256;
  const Bits* values = static_cast<const Bits*>(data);
  int64_t count = 0;
  int64_t i = 0;
  for (; i + kBlock <= size; i += kBlock) {
    Bits in_block = 0;
    for (int64_t j = 0; j < kBlock; ++j) in_block += static_cast<Bits>((values[i + j] & exponent) == exponent);
    count += in_block;
  }
  for (; i < size; ++i) count += static_cast<int64_t>((values[i] & exponent) == exponent);
  return count;
}

bool IsOnAccelerator(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.numel() > 0 && !tensor.is_cpu();
}

}  // namespace

int64_t CountNonFinite(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) return 0;
  const bool lies_together = tensor.is_cpu() && tensor.is_non_overlapping_and_dense();
  const at::Tensor values = lies_together ? tensor : tensor.detach().cpu().contiguous();
  const void* data = values.const_data_ptr();
  switch (values.scalar_type()) {
    case at::kDouble:
      return Count<uint64_t>(data, values.numel(), 0x7FF0000000000000);
    case at::kFloat:
      return Count<uint32_t>(data, values.numel(), 0x7F800000);
    case at::kBFloat16:
      return Count<uint16_t>(data, values.numel(), 0x7F80);
    case at::kHalf:
      return Count<uint16_t>(data, values.numel(), 0x7C00);
    default:
      return CountNonFinite(values.to(at::kFloat));  // 8-bit formats
  }
}

at::Tensor NonFiniteFlags(const std::vector<at::Tensor>& tensors) {
  // The largest magnitude of each tensor: unlike a sum of squares, it overflows for no finite number.
  std::vector<at::Tensor> largest = at::_foreach_norm(tensors, std::numeric_limits<double>::infinity());
  for (at::Tensor& value : largest) value = value.to(at::kDouble);
  return at::isfinite(at::stack(largest)).logical_not_();
}

std::vector<bool> HaveNonFinite(const std::vector<at::Tensor>& tensors) {
  std::vector<bool> found;
  std::vector<size_t> places;
  std::vector<at::Tensor> on_accelerator;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_there = IsOnAccelerator(tensors[i]);
    found.push_back(!is_there && CountNonFinite(tensors[i]) > 0);
    if (!is_there) continue;
    places.push_back(i);
    on_accelerator.push_back(tensors[i].detach());
  }
  if (places.empty()) return found;
  const at::Tensor flags = NonFiniteFlags(on_accelerator).to(at::kCPU);
  const bool* flag = flags.const_data_ptr<bool>();
  for (const size_t place : places) found[place] = *flag++;
  return found;
}

}  // namespace ssl
