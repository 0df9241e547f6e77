// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

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

absl::Status CheckQueueSize(int64_t queue_size, int64_t batch_size, int64_t ranks) {
  const int64_t global_batch = std::max<int64_t>(1, batch_size * ranks);
  if (queue_size % global_batch == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("config.LOSS.moco_loss.queue_size is ", queue_size, ", expected a multiple of ", global_batch,
                   ", the images of a batch over all ranks (config.DATA.TRAIN.BATCHSIZE_PER_REPLICA ", batch_size,
                   " x ", ranks, " ranks)"));
}

}  // namespace ssl
