// SPDX-License-Identifier: Apache-2.0
//
// SimCLR (arXiv 2002.05709): an embedding is to recognise the other views of its image among views of other images.
// The multi-crop loss looks at other images of the own rank alone, as in VISSL.
//
// The model returns one tensor [V*B, D]. The method has no state: ranks and batch are asked for at each step.
#ifndef SSL_METHODS_SIMCLR_SIMCLR_METHOD_H_
#define SSL_METHODS_SIMCLR_SIMCLR_METHOD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ssl/core/method.h"
#include "ssl/losses/info_nce.h"
#include "ssl/methods/embedding_checks.h"

namespace ssl {

class SimclrMethod : public Method {
 public:
  // name: of the loss, for messages. embedding_dim: width that the model's embeddings must have.
  SimclrMethod(const std::string& name, const InfoNceOptions& options, int64_t embedding_dim);

  // InvalidArgument when a batch has no negatives, or when the head has another width than embedding_dim.
  absl::Status Prepare(StepContext& context) override;

  // InvalidArgument when batch or outputs do not fit the options. Backward is collective.
  absl::Status ComputeLoss(StepContext& context) override;

  // The same for all updates.
  std::optional<int64_t> RecordingKey(const StepContext&) const override { return 0; }

 private:
  const InfoNceOptions options_;
  const EmbeddingShape embeddings_;
};

}  // namespace ssl

#endif  // SSL_METHODS_SIMCLR_SIMCLR_METHOD_H_
