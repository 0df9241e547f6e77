// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/batch_order.h"

#include <ATen/ops/arange.h>

#include <utility>

#include "ssl/base/random.h"

namespace ssl {
namespace {

// The stream's operation: beyond those of transforms, which are positions in lists.
constexpr uint64_t kBatchOrder = uint64_t{1} << 62;

}  // namespace

at::Tensor BatchOrder(int64_t count, int64_t seed, int64_t phase, int64_t batch) {
  CounterRandom random(static_cast<uint64_t>(seed), static_cast<uint64_t>(phase), static_cast<uint64_t>(batch),
                       /*view=*/0, kBatchOrder);
  at::Tensor order = at::arange(count, at::kLong);
  int64_t* const numbers = order.mutable_data_ptr<int64_t>();
  for (int64_t i = count - 1; i > 0; --i) std::swap(numbers[i], numbers[random.UniformInt(0, i)]);
  return order;
}

}  // namespace ssl
