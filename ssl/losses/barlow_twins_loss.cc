// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/barlow_twins_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/losses/gather_with_gradient.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kVarianceEps = 1e-5;

// rows: [2*B, D]. Returns them with mean 0 and variance 1 in each column, over the rows of all ranks.
absl::StatusOr<at::Tensor> NormalizeColumns(const at::Tensor& rows, Communicator& communicator) {
  const auto [variance, mean] = at::var_mean(rows, at::IntArrayRef({0}), /*correction=*/0);
  SSL_ASSIGN_OR_RETURN(const at::Tensor ranks, GatherWithGradient(at::stack({mean, variance}), communicator));
  // The ranks have equally many rows: the total variance is the mean of the variances plus the variance of the means.
  // (A mean of squares less a squared mean would lose everything where the mean is large.)
  const at::Tensor means = ranks.select(1, 0);  // [size, D]
  const at::Tensor total_mean = means.mean(0);
  const at::Tensor total_variance = ranks.select(1, 1).mean(0) + (means - total_mean).square().mean(0);
  return (rows - total_mean) * at::rsqrt(total_variance + kVarianceEps);
}

// c of the header, as its diagonal less 1, and the rest with zeros on the diagonal.
struct Correlation {
  at::Tensor on_diagonal;   // [D]
  at::Tensor off_diagonal;  // [D, D]
};

// rows: [2*B, D], outside the graph.
absl::StatusOr<Correlation> Correlate(const at::Tensor& rows, Communicator& communicator) {
  const int64_t batch_size = rows.size(0) / 2;
  const at::Tensor first = rows.narrow(0, 0, batch_size);
  const at::Tensor second = rows.narrow(0, batch_size, batch_size);
  Correlation correlation;
  correlation.off_diagonal = at::mm((first / static_cast<double>(batch_size)).t(), second);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(correlation.off_diagonal, ReduceOp::kMean));
  correlation.on_diagonal = correlation.off_diagonal.diagonal() - 1;
  correlation.off_diagonal.fill_diagonal_(0);
  return correlation;
}

// The loss of a known correlation, with the gradient in closed form: autograd would keep and pass over several D x D
// matrices, which for the usual D = 8192 have 256 MiB each.
struct CorrelationLoss : public torch::autograd::Function<CorrelationLoss> {
  // gradient_factor: of d loss / d c in the gradient of a product of two rows.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const Correlation& correlation,
                            const BarlowTwinsLossOptions& options, double gradient_factor) {
    context->save_for_backward({rows, correlation.on_diagonal, correlation.off_diagonal});
    context->saved_data["lambda"] = options.lambda;
    context->saved_data["factor"] = 2.0 * options.scale * gradient_factor;
    // Row by row, so that float sums stay short.
    const at::Tensor off = correlation.off_diagonal.norm(2, 1).square().sum();
    return (correlation.on_diagonal.square().sum() + options.lambda * off) * options.scale;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const int64_t batch_size = saved[0].size(0) / 2;
    const at::Tensor first = saved[0].narrow(0, 0, batch_size);
    const at::Tensor second = saved[0].narrow(0, batch_size, batch_size);
    const at::Tensor& off = saved[2];
    const double lambda = context->saved_data["lambda"].toDouble();
    // With G = d loss / d c (a multiple of lambda off + diag(on)): A gets A' G^T, and A' gets A G.
    const at::Tensor gradient = at::cat({second, first}, 0).mul_(saved[1]);
    gradient.narrow(0, 0, batch_size).addmm_(second, off.t(), 1, lambda);
    gradient.narrow(0, batch_size, batch_size).addmm_(first, off, 1, lambda);
    gradient.mul_(gradients[0] * context->saved_data["factor"].toDouble());
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

absl::StatusOr<at::Tensor> BarlowTwinsLoss(const at::Tensor& embeddings, const BarlowTwinsLossOptions& options,
                                           Communicator& communicator) {
  if (embeddings.dim() != 2 || embeddings.size(0) == 0 || embeddings.size(0) % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("embeddings have shape [", absl::StrJoin(embeddings.sizes(), ", "),
                                                   "], expected [rows, width] with an even number of rows, half of "
                                                   "them of each view"));
  }
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  SSL_ASSIGN_OR_RETURN(const at::Tensor rows, NormalizeColumns(FullPrecision(embeddings), communicator));
  SSL_ASSIGN_OR_RETURN(const Correlation correlation, Correlate(rows.detach(), communicator));
  const double gradient_factor = 1.0 / static_cast<double>(rows.size(0) / 2 * communicator.size());
  return CorrelationLoss::apply(rows, correlation, options, gradient_factor);
}

}  // namespace ssl
