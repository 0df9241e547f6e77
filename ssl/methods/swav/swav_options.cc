// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_options.h"

namespace ssl {

void SwavQueueOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("queue_length", &queue_length,
                Doc("Older images that take part in the balancing, over all ranks; rounded down to whole batches.")
                    .AtLeast(0)
                    .Unit("images"));
  visitor.Field("start_iter", &start_iter,
                Doc("The queue is used from this batch on (of grad_acc_steps to an update).").AtLeast(0));
}

void SwavOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("embedding_dim", &embedding_dim, Doc("Width of the embeddings; taken from the head.").AtLeast(1));
  visitor.Field("temperature", &temperature, Doc("Divides the scores before the softmax.").Above(0));
  visitor.Field("use_double_precision", &use_double_precision, Doc("Computes assignments in float64."));
  visitor.Field("normalize_last_layer", &normalize_last_layer, Doc("Prototypes of unit length after each update."));
  visitor.Field("num_iters", &num_iters, Doc("Iterations of Sinkhorn-Knopp.").AtLeast(1));
  visitor.Field("epsilon", &epsilon, Doc("Regularisation of Sinkhorn-Knopp; smaller: harder assignments.").Above(0));
  visitor.Field("num_crops", &num_crops, Doc("Crops per image; taken from the transforms.").AtLeast(2));
  visitor.Field("crops_for_assign", &crops_for_assign, Doc("Crops that get assignments.").AtLeast(0));
  visitor.Field("num_prototypes", &num_prototypes, Doc("Prototypes per head; taken from the head.").AtLeast(1));
  visitor.Field("temp_hard_assignment_iters", &temp_hard_assignment_iters,
                Doc("One-hot assignments for the first batches.").AtLeast(0));
  visitor.Field("shk_powerlaw", &shk_powerlaw, Doc("Prototype i gets mass ~ 1/i^p; 0: equal masses.").AtLeast(0));
  visitor.Section("queue", &queue, Doc("Embeddings of earlier batches."));
}

}  // namespace ssl
