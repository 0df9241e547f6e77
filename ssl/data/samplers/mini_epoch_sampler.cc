// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/mini_epoch_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

namespace ssl {
namespace {

constexpr int64_t kFirstSeed = 1000;  // United Perception's

}  // namespace

int64_t MiniEpochSampler::size() const {
  const int64_t parts = options_.world_size * options_.mini_epochs;
  return (options_.dataset_size + parts - 1) / parts;
}

std::vector<int64_t> MiniEpochSampler::Order(int64_t pass) const {
  const int64_t count = options_.dataset_size;
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options_.seed + kFirstSeed + pass));
  std::vector<int64_t> order;
  order.reserve(count);
  // Further groups would be empty.
  const int64_t groups = std::min(options_.groups, count);
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t first = group * count / groups;
    const int64_t length = (group + 1) * count / groups - first;
    const at::Tensor permutation = at::randperm(length, generator, at::kLong);
    const int64_t* positions = permutation.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < length; ++i) order.push_back(first + positions[i]);
  }
  return order;
}

std::vector<int64_t> MiniEpochSampler::Indices(int64_t epoch) const {
  const std::vector<int64_t>& known = options_.mini_epoch_of;
  const int64_t done = known.empty() ? epoch : known[epoch];
  const std::vector<int64_t> order = Order(done / options_.mini_epochs);
  const int64_t block = done % options_.mini_epochs * options_.world_size + options_.rank;
  std::vector<int64_t> mine(size());
  for (int64_t i = 0; i < size(); ++i) mine[i] = order[(block * size() + i) % options_.dataset_size];
  return mine;
}

}  // namespace ssl
