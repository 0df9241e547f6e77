// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <c10/core/ScalarType.h>

namespace ssl {

at::Tensor FullPrecision(const at::Tensor& values) {
  return values.to(c10::promoteTypes(values.scalar_type(), at::kFloat));
}

at::Tensor UnitRows(const at::Tensor& rows) {
  constexpr double kNormEps = 1e-12;
  return rows / rows.norm(2, 1, /*keepdim=*/true).clamp_min(kNormEps);
}

at::Tensor SelectEntries(const at::Tensor& values, const std::vector<int64_t>& numbers) {
  std::vector<at::Tensor> entries;
  for (const int64_t number : numbers) entries.push_back(values.select(0, number));
  return at::stack(entries);
}

}  // namespace ssl
