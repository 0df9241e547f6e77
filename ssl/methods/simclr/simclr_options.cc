// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr_options.h"

namespace ssl {

void SimclrBufferOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("world_size", &world_size, Doc("Ranks; follows from DISTRIBUTED.").AtLeast(1).MayChange());
  visitor.Field("embedding_dim", &embedding_dim, Doc("Width of the embeddings, as the head gives them.").AtLeast(1));
  visitor.Field("effective_batch_size", &effective_batch_size,
                Doc("Rows of a batch over all ranks; follows from BATCHSIZE_PER_REPLICA.").AtLeast(1));
}

void SimclrOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("temperature", &temperature, Doc("Divides the cosine similarities.").Above(0));
  visitor.Section("buffer_params", &buffer_params, Doc("Sizes."));
}

void MulticropSimclrOptions::VisitFields(FieldVisitor& visitor) {
  SimclrOptions::VisitFields(visitor);
  visitor.Field("num_crops", &num_crops, Doc("Crops per image; taken from the transforms.").AtLeast(2));
}

}  // namespace ssl
