// SPDX-License-Identifier: Apache-2.0
//
// Classification by weighted nearest neighbours (Wu et al., arXiv 1805.01978; the protocol of DINO and VISSL): a
// query takes its k most similar bank samples; each votes for its class with weight exp(similarity / temperature).
#ifndef SSL_METERS_WEIGHTED_KNN_H_
#define SSL_METERS_WEIGHTED_KNN_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"

namespace ssl {

struct WeightedKnnOptions {
  int64_t k = 20;
  double temperature = 0.07;
  bool normalize = true;  // similarity is the cosine; otherwise the dot product
  // Called with the number of queries done.
  std::function<void(int64_t)> on_progress = nullptr;
  // Asked between blocks of queries; null: nobody stops it.
  const StopToken* stop = nullptr;
};

struct KnnAccuracy {
  double top1 = 0.0;  // fractions in [0, 1]
  double top5 = 0.0;
  at::Tensor predictions = {};  // [M, min(5, classes)] int64, the most voted class first
};

// bank: [N, D], queries: [M, D] float; labels: [N] and [M] int64, from 0, with gaps of any size. Similarities are
// computed for a block of queries at a time, within 64 MiB, never all N x M at once. InvalidArgument when shapes do not
// fit, k > N, or a feature is not finite; Cancelled when a stop is requested. May throw LibTorch exceptions.
absl::StatusOr<KnnAccuracy> WeightedKnn(const at::Tensor& bank, const at::Tensor& bank_labels,
                                        const at::Tensor& queries, const at::Tensor& query_labels,
                                        const WeightedKnnOptions& options);

}  // namespace ssl

#endif  // SSL_METERS_WEIGHTED_KNN_H_
