// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/barlow_twins/barlow_twins_options.h"

namespace ssl {

void BarlowTwinsOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("lambda_", &lambda, Doc("Weight of the correlation of different features.").AtLeast(0));
  visitor.Field("scale_loss", &scale_loss, Doc("Factor of the whole loss.").Above(0));
  visitor.Field("embedding_dim", &embedding_dim, Doc("Width of the embeddings, as the head gives them.").AtLeast(1));
}

}  // namespace ssl
