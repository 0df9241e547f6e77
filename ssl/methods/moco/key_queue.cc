// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/key_queue.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>

#include <algorithm>

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
  next_ = 0;
}

void KeyQueue::Enqueue(const at::Tensor& keys) {
  const at::NoGradGuard no_grad;
  const int64_t count = keys.size(0);
  const int64_t before_end = std::min(count, rows_.size(0) - next_);
  rows_.narrow(0, next_, before_end).copy_(keys.narrow(0, 0, before_end));
  // A smaller batch at the end of an epoch shifts the ones after it over the end of the ring.
  if (before_end < count) rows_.narrow(0, 0, count - before_end).copy_(keys.narrow(0, before_end, count - before_end));
  next_ = (next_ + count) % rows_.size(0);
}

void KeyQueue::VisitState(StateVisitor& visitor) {
  visitor.Tensor("queue", rows_);
  visitor.Int("queue_ptr", next_);
}

}  // namespace ssl
