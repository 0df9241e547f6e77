// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/key_queue.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

namespace ssl {
namespace {

constexpr double kNormEps = 1e-12;  // as torch.nn.functional.normalize

}  // namespace

void KeyQueue::Initialize(int64_t size, int64_t dim, int64_t seed, const at::Device& device) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  // VISSL draws its queue with a key in each column, on the CPU.
  at::Tensor columns = at::randn({dim, size}, generator, at::kFloat);
  columns.div_(columns.norm(2, 0, /*keepdim=*/true).clamp_min(kNormEps));
  rows_ = columns.t().contiguous().to(device);
  next_ = at::zeros({}, rows_.options().dtype(at::kLong));
}

void KeyQueue::Enqueue(const at::Tensor& keys) {
  const at::NoGradGuard no_grad;
  // A smaller batch at the end of an epoch shifts the ones after it over the end of the ring.
  const at::Tensor places = at::arange(keys.size(0), next_.options()).add_(next_).remainder_(rows_.size(0));
  rows_.index_copy_(0, places, keys.to(rows_.scalar_type()));
  next_.add_(keys.size(0)).remainder_(rows_.size(0));
}

void KeyQueue::VisitState(StateVisitor& visitor) {
  visitor.Tensor("queue", rows_);
  visited_next_ = next_.item<int64_t>();
  visitor.Int("queue_ptr", visited_next_);
  visitor.OnRestored([this] { next_.fill_(visited_next_); });
}

}  // namespace ssl
