// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/sinkhorn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/kernels/balance_by_kernel.h"

namespace ssl {
namespace {

constexpr double kZeroRowRepair = 1e-12;  // VISSL's value

// Infinite entries become the largest finite entry among dimensions `dims`.
at::Tensor ReplaceInfinite(const at::Tensor& values, at::IntArrayRef dims) {
  const at::Tensor infinite = at::isinf(values);
  const at::Tensor finite = at::where(infinite, std::numeric_limits<float>::lowest(), values);
  return at::where(infinite, at::amax(finite, dims, /*keepdim=*/true), values);
}

// [K]: the share of each prototype; sums to 1.
at::Tensor PrototypeMass(const at::Tensor& weights, double powerlaw) {
  const int64_t num_prototypes = weights.size(-1);
  if (powerlaw <= 0.0) return at::full({num_prototypes}, 1.0 / num_prototypes, weights.options());
  const at::Tensor mass = at::arange(1, num_prototypes + 1, weights.options()).pow(-powerlaw);
  return mass / mass.sum();
}

absl::Status CheckScores(const at::Tensor& scores, const SinkhornOptions& options) {
  if (scores.dim() < 2 || scores.numel() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("scores of shape [", absl::StrJoin(scores.sizes(), ", "),
                                                   "], expected [samples, prototypes] with at least one of each"));
  }
  if (options.epsilon <= 0.0 || options.num_iters < 1) {
    return absl::InvalidArgumentError(absl::StrCat("Sinkhorn's epsilon is ", options.epsilon, ", num_iters ",
                                                   options.num_iters, "; expected above 0 and at least 1"));
  }
  return absl::OkStatus();
}

// One launch instead of one for each operator, where nothing is summed over ranks in between.
bool UsesKernel(const at::Tensor& scores, const SinkhornOptions& options, const Communicator& communicator) {
  return communicator.size() == 1 && !options.double_precision && HasBalanceKernel(scores);
}

absl::StatusOr<at::Tensor> SoftAssignments(const at::Tensor& scores, const SinkhornOptions& options,
                                           Communicator& communicator) {
  if (UsesKernel(scores, options, communicator)) {
    return BalanceByKernel(scores, {static_cast<float>(options.epsilon), static_cast<int>(options.num_iters),
                                    static_cast<float>(std::max(options.powerlaw, 0.0))});
  }
  at::Tensor weights = scores.detach().to(options.double_precision ? at::kDouble : at::kFloat) / options.epsilon;
  if (!options.double_precision) {
    // exp() of shifted scores cannot overflow; the shift cancels in the normalisation.
    at::Tensor maximum = at::amax(weights, {-2, -1}, /*keepdim=*/true);
    SSL_RETURN_IF_ERROR(communicator.AllReduce(maximum, ReduceOp::kMax));
    weights.sub_(maximum);
  }
  return BalanceAssignments(weights.exp_(), options, communicator);
}

}  // namespace

absl::StatusOr<at::Tensor> BalanceAssignments(at::Tensor weights, const SinkhornOptions& options,
                                              Communicator& communicator) {
  const at::NoGradGuard no_grad;
  // Q: [..., n, K]; global_samples = n * ranks.
  at::Tensor q = ReplaceInfinite(weights, {-2, -1});
  at::Tensor total = at::sum(q, {-2, -1}, /*keepdim=*/true);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(total, ReduceOp::kSum));
  q.div_(total);

  const double global_samples = static_cast<double>(q.size(-2)) * static_cast<double>(communicator.size());
  const at::Tensor target = PrototypeMass(q, options.powerlaw);
  for (int64_t iteration = 0; iteration < options.num_iters; ++iteration) {
    at::Tensor mass = at::sum(q, {-2}, /*keepdim=*/true);  // [..., 1, K]
    SSL_RETURN_IF_ERROR(communicator.AllReduce(mass, ReduceOp::kSum));
    // The repair adds the same small number to every entry, so what it adds to the sums is known: neither a look at
    // the values nor a second reduction is needed.
    const at::Tensor repair = (mass == 0).any(-1, /*keepdim=*/true).to(q.scalar_type()).mul_(kZeroRowRepair);
    q.add_(repair);
    mass.add_(repair, global_samples);
    q.mul_(ReplaceInfinite(target / mass, {-2, -1}));
    q.mul_(at::reciprocal(at::sum(q, {-1}, /*keepdim=*/true).mul_(global_samples)));
  }
  return q.div_(at::sum(q, {-1}, /*keepdim=*/true)).to(at::kFloat);
}

absl::StatusOr<at::Tensor> SinkhornAssignments(const at::Tensor& scores, const SinkhornOptions& options,
                                               Communicator& communicator) {
  SSL_RETURN_IF_ERROR(CheckScores(scores, options));
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const at::Tensor assignments, SoftAssignments(scores, options, communicator));
  if (!options.hard) return assignments;
  return at::zeros_like(assignments).scatter_(-1, at::argmax(assignments, -1, /*keepdim=*/true), 1.0);
}

}  // namespace ssl
