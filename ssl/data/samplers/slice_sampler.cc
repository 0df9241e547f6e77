// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/slice_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <numeric>

namespace ssl {

std::vector<int64_t> SliceSampler::Indices(int64_t epoch) const {
  const int64_t first = options_.rank * size();
  std::vector<int64_t> order(size());
  std::iota(order.begin(), order.end(), first);
  if (!options_.shuffle) return order;
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options_.seed + epoch));
  const at::Tensor permutation = at::randperm(size(), generator, at::kLong);
  const int64_t* positions = permutation.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < size(); ++i) order[i] = first + positions[i];
  return order;
}

}  // namespace ssl
