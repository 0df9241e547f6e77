// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/distributed_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <numeric>

namespace ssl {

int64_t DistributedSampler::size() const {
  const int64_t world = options_.world_size;
  return options_.drop_last ? options_.dataset_size / world : (options_.dataset_size + world - 1) / world;
}

std::vector<int64_t> DistributedSampler::Indices(int64_t epoch) const {
  const int64_t count = options_.dataset_size;
  std::vector<int64_t> order(count);
  if (options_.shuffle) {
    at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options_.seed + epoch));
    const at::Tensor permutation = at::randperm(count, generator, at::kLong);
    const int64_t* values = permutation.const_data_ptr<int64_t>();
    order.assign(values, values + count);
  } else {
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<int64_t> mine(size());
  for (int64_t i = 0; i < size(); ++i) {
    // Past the end the order starts again, as often as a large world needs.
    mine[i] = order[(options_.rank + i * options_.world_size) % count];
  }
  return mine;
}

}  // namespace ssl
