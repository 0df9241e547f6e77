// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/average_precision.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cummax.h>

#include <tuple>

namespace ssl {

at::Tensor AveragePrecision(const at::Tensor& scores, const at::Tensor& targets) {
  const at::Tensor order = at::argsort(scores, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor ranked = targets.gather(0, order);
  const at::Tensor positive = ranked.eq(1).to(at::kDouble);
  // Whole numbers: LibTorch's sum over floats of a GPU has no deterministic version.
  const at::Tensor hits = ranked.eq(1).cumsum(0);
  // The precision at an unknown sample repeats that of the known one before it, and changes no maximum.
  const at::Tensor known = ranked.ne(-1).cumsum(0).clamp_min(1).to(at::kDouble);
  const at::Tensor precision = hits / known;
  const at::Tensor envelope = std::get<0>(at::cummax(precision.flip(0), 0)).flip(0);
  const at::Tensor count = positive.sum(0);
  return ((envelope * positive).sum(0) / count.clamp_min(1)).masked_fill(count.eq(0), -1.0);
}

}  // namespace ssl
