// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_options.h"

namespace ssl {

void MocoOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("embedding_dim", &embedding_dim, Doc("Width of the embeddings: that of the last head.").AtLeast(1));
  visitor.Field(
      "queue_size", &queue_size,
      Doc("Keys of earlier images, over all ranks; a multiple of the batch over all ranks.").AtLeast(1).Unit("images"));
  visitor.Field("momentum", &momentum,
                Doc("Share of its own weights that the key encoder keeps in each step.").Between(0, 1));
  visitor.Field("temperature", &temperature, Doc("Divides the similarities before the softmax.").Above(0));
}

}  // namespace ssl
