// SPDX-License-Identifier: Apache-2.0
//
// What methods that compare embeddings of views check before they compute: that the model's head has the width that the
// loss is told, and that batch and outputs have the views that it compares. Messages name the key, its value and what
// was found. Stateless; any thread.
#ifndef SSL_METHODS_EMBEDDING_CHECKS_H_
#define SSL_METHODS_EMBEDDING_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/core/model.h"
#include "ssl/core/step_context.h"

namespace ssl {

// What a loss expects of the model's output: [num_views*B, width], view-major.
struct EmbeddingShape {
  std::string loss;       // its name, for messages
  std::string width_key;  // of its width, below the loss: "embedding_dim"
  int64_t num_views = 2;
  int64_t width = 0;
};

// InvalidArgument when the last matrix of the model's heads ("heads....weight", [out, in]) gives another number of
// values than `expected.width`. A model without heads passes: its outputs tell later.
absl::Status CheckHeadWidth(Model& model, const EmbeddingShape& expected);

// InvalidArgument unless the batch has the expected views and the model returned one tensor of the expected shape.
absl::Status CheckEmbeddings(const StepContext& context, const EmbeddingShape& expected);

}  // namespace ssl

#endif  // SSL_METHODS_EMBEDDING_CHECKS_H_
