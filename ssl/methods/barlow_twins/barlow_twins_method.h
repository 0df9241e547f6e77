// SPDX-License-Identifier: Apache-2.0
//
// Barlow Twins (arXiv 2103.03230): the features of two views' embeddings are to agree with themselves and to be
// uncorrelated with each other.
//
// The model returns one tensor [2*B, D]. The method has no state: ranks and batch are asked for at each step.
#ifndef SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_METHOD_H_
#define SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_METHOD_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "ssl/core/method.h"
#include "ssl/losses/barlow_twins_loss.h"
#include "ssl/methods/embedding_checks.h"

namespace ssl {

class BarlowTwinsMethod : public Method {
 public:
  // embedding_dim: width that the model's embeddings must have.
  BarlowTwinsMethod(const BarlowTwinsLossOptions& options, int64_t embedding_dim)
      : options_(options), embeddings_{"barlow_twins_loss", "embedding_dim", 2, embedding_dim} {}

  // InvalidArgument when a batch has fewer than two images, or when the head has another width than embedding_dim.
  absl::Status Prepare(StepContext& context) override;

  // InvalidArgument when batch or outputs do not fit the options. Backward is collective.
  absl::Status ComputeLoss(StepContext& context) override;

  // The same for all updates.
  std::optional<int64_t> RecordingKey(const StepContext&) const override { return 0; }

 private:
  const BarlowTwinsLossOptions options_;
  const EmbeddingShape embeddings_;
};

}  // namespace ssl

#endif  // SSL_METHODS_BARLOW_TWINS_BARLOW_TWINS_METHOD_H_
