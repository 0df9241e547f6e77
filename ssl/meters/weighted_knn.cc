// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/weighted_knn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kTop = 5;
constexpr int64_t kBlockBytes = int64_t{64} << 20;
constexpr int64_t kBlockQueries = 64;  // at most: of images as features, these take seconds

absl::Status CheckShapes(const at::Tensor& bank, const at::Tensor& bank_labels, const at::Tensor& queries,
                         const at::Tensor& query_labels, int64_t k) {
  const bool matrices = bank.dim() == 2 && queries.dim() == 2 && bank.size(1) == queries.size(1);
  if (!matrices || bank_labels.numel() != bank.size(0) || query_labels.numel() != queries.size(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nearest neighbours: bank is [", absl::StrJoin(bank.sizes(), ", "), "] with ", bank_labels.numel(),
                     " labels, queries are [", absl::StrJoin(queries.sizes(), ", "), "] with ", query_labels.numel(),
                     " labels; expected [N, D] with N and [M, D] with M"));
  }
  if (k < 1 || k > bank.size(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nearest neighbours: k is ", k, ", expected 1 to the ", bank.size(0), " samples of the bank"));
  }
  return absl::OkStatus();
}

absl::Status CheckFinite(const at::Tensor& rows, const char* what) {
  const at::Tensor finite = at::isfinite(rows).all(1);
  if (finite.all().item<bool>()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("nearest neighbours: row ",
                                                 finite.logical_not().nonzero()[0].item<int64_t>(), " of the ", what,
                                                 " has values that are not finite, expected numbers"));
}

// Each row divided by its length; rows of zeros stay.
at::Tensor NormalizeRows(const at::Tensor& rows) {
  return rows.div(rows.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12));
}

// The classes that can be among the first `top` of a query, ascending: those that occur, and of the others, which get
// no vote and so rank by their number, the lowest. Labels may be identifiers, and votes for every number below the
// largest would take all memory.
at::Tensor RankableClasses(const at::Tensor& bank_labels, const at::Tensor& query_labels, int64_t top) {
  const at::Tensor labels = at::cat({bank_labels.flatten(), query_labels.flatten()});
  const at::Tensor occurring = std::get<0>(at::_unique(labels));
  const int64_t lowest = std::min(labels.max().item<int64_t>() + 1, occurring.numel() + top);
  return std::get<0>(at::_unique(at::cat({occurring, at::arange(lowest, labels.options())}), /*sorted=*/true));
}

}  // namespace

absl::StatusOr<KnnAccuracy> WeightedKnn(const at::Tensor& bank, const at::Tensor& bank_labels,
                                        const at::Tensor& queries, const at::Tensor& query_labels,
                                        const WeightedKnnOptions& options) {
  SSL_RETURN_IF_ERROR(CheckShapes(bank, bank_labels, queries, query_labels, options.k));
  SSL_RETURN_IF_ERROR(CheckFinite(bank, "bank"));
  SSL_RETURN_IF_ERROR(CheckFinite(queries, "queries"));
  const at::Tensor classes =
      RankableClasses(bank_labels, query_labels, kTop);  // from here on a class is its place in it
  const at::Tensor bank_classes = at::searchsorted(classes, bank_labels.flatten());
  const at::Tensor query_classes = at::searchsorted(classes, query_labels.flatten());
  const int64_t top = std::min<int64_t>(kTop, classes.numel());
  const int64_t block =
      std::clamp<int64_t>(kBlockBytes / (bank.size(0) * static_cast<int64_t>(sizeof(float))), 1, kBlockQueries);
  const at::Tensor bank_rows = (options.normalize ? NormalizeRows(bank) : bank).t();  // [D, N]
  const at::Tensor predictions = at::empty({queries.size(0), top}, query_labels.options());
  int64_t top1 = 0;
  int64_t top5 = 0;
  for (int64_t begin = 0; begin < queries.size(0); begin += block) {
    if (options.stop != nullptr && options.stop->requested()) {
      return absl::CancelledError("nearest neighbours: stopped");
    }
    const at::Tensor rows = queries.slice(0, begin, begin + block);                                    // [b, D]
    const at::Tensor similarity = (options.normalize ? NormalizeRows(rows) : rows).matmul(bank_rows);  // [b, N]
    const auto [nearest, neighbors] = similarity.topk(options.k);                                      // [b, k]
    const at::Tensor votes = at::zeros({rows.size(0), classes.numel()}, bank.options());
    // Relative to the nearest neighbour: a factor that all of a query's votes share, and no overflow.
    const at::Tensor weights = (nearest - nearest.slice(1, 0, 1)).div(options.temperature).exp();
    votes.scatter_add_(1, bank_classes.index_select(0, neighbors.flatten()).view_as(neighbors), weights);
    // Stable: classes without a vote rank by their number, as in VISSL.
    const at::Tensor ranked = std::get<1>(votes.sort(/*stable=*/true, 1, /*descending=*/true)).slice(1, 0, top);
    const at::Tensor hits = ranked.eq(query_classes.slice(0, begin, begin + block).unsqueeze(1));
    predictions.slice(0, begin, begin + block).copy_(classes.index_select(0, ranked.flatten()).view_as(ranked));
    top1 += hits.slice(1, 0, 1).sum().item<int64_t>();
    top5 += hits.sum().item<int64_t>();
    if (options.on_progress) options.on_progress(std::min(begin + block, queries.size(0)));
  }
  const double count = static_cast<double>(queries.size(0));
  return KnnAccuracy{static_cast<double>(top1) / count, static_cast<double>(top5) / count, predictions};
}

}  // namespace ssl
