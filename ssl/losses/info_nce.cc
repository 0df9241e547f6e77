// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/info_nce.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softplus.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/losses/gather_with_gradient.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

// A logit whose exponential is 0 beside any other. Finite, so that rows of nothing else have a gradient: none.
constexpr double kNever = -1e30;

absl::Status CheckArguments(const at::Tensor& embeddings, const InfoNceOptions& options) {
  if (options.num_views < 2) {
    return absl::InvalidArgumentError(absl::StrCat("num_views is ", options.num_views, ", expected at least 2"));
  }
  if (embeddings.dim() != 2 || embeddings.size(0) == 0 || embeddings.size(0) % options.num_views != 0) {
    return absl::InvalidArgumentError(absl::StrCat("embeddings have shape [", absl::StrJoin(embeddings.sizes(), ", "),
                                                   "], expected [rows, width] with a multiple of ", options.num_views,
                                                   " (num_views) rows"));
  }
  return absl::OkStatus();
}

// queries: [V*B, D], keys: [K, D], rows first_own ... of which belong to the queries' images. Returns [V*B, K] with
// kNever wherever query and key show the same image.
at::Tensor NegativeLogits(const at::Tensor& queries, const at::Tensor& keys, int64_t first_own, int64_t num_views) {
  const int64_t rows = queries.size(0);
  const int64_t batch_size = rows / num_views;
  const at::Tensor logits = at::mm(queries, keys.t());
  // Behind autograd's back, which costs no copy: the sum of exponentials gives kNever no gradient anyway.
  logits.detach()
      .narrow(1, first_own, rows)
      .view({num_views, batch_size, num_views, batch_size})
      .diagonal(0, 1, 3)
      .fill_(kNever);
  return logits;
}

// queries, keys: [V*B, D]. Returns [B, V, V], view against view of each image, with -kNever for a view against itself.
at::Tensor PositiveLogits(const at::Tensor& queries, const at::Tensor& keys, int64_t num_views) {
  const int64_t width = queries.size(1);
  const at::Tensor views = queries.view({num_views, -1, width}).permute({1, 0, 2});
  const at::Tensor other_views = keys.view({num_views, -1, width}).permute({1, 2, 0});
  const at::Tensor logits = at::bmm(views, other_views);
  logits.detach().diagonal(0, 1, 2).fill_(-kNever);  // as above: softplus(kNever) has no gradient
  return logits;
}

}  // namespace

absl::StatusOr<at::Tensor> InfoNce(const at::Tensor& embeddings, const InfoNceOptions& options,
                                   Communicator& communicator) {
  SSL_RETURN_IF_ERROR(CheckArguments(embeddings, options));
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t num_views = options.num_views;
  const at::Tensor rows = UnitRows(FullPrecision(embeddings));  // [V*B, D]
  const at::Tensor queries = rows / options.temperature;
  at::Tensor keys = rows;
  int64_t first_own = 0;
  if (options.negatives_of_all_ranks) {
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, GatherWithGradient(rows, communicator));
    keys = all.flatten(0, 1);
    first_own = communicator.rank() * rows.size(0);
  }
  const at::Tensor negatives = at::logsumexp(NegativeLogits(queries, keys, first_own, num_views), 1);
  const at::Tensor positives = PositiveLogits(queries, rows, num_views);
  // -log(e^p / (e^p + e^n)) = softplus(n - p).
  const at::Tensor terms = at::softplus(negatives.view({num_views, -1}).t().unsqueeze(2) - positives);
  return terms.sum() / static_cast<double>(rows.size(0) * (num_views - 1));
}

}  // namespace ssl
