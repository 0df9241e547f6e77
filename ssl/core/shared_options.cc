// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/shared_options.h"

namespace ssl {

void ReportOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("LOG_FREQUENCY", &log_frequency, Doc("iterations between progress lines").AtLeast(1).MayChange());
}

void CheckpointCadenceOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("CHECKPOINT_FREQUENCY", &epoch_frequency,
                Doc("train epochs between checkpoints, 0 or -1 for none").AtLeast(-1).MayChange());
  visitor.Field("CHECKPOINT_START", &epoch_start,
                Doc("epoch, from 1, before which no epoch is saved (ours)").AtLeast(1).MayChange());
  visitor.Field("CHECKPOINT_ANCHOR", &epoch_anchor,
                Doc("epoch from which CHECKPOINT_FREQUENCY counts: 1 saves 1, F + 1, ..., 0 saves F, 2 F, ... (ours)")
                    .AtLeast(0)
                    .MayChange());
  visitor.Field("CHECKPOINT_ITER_FREQUENCY", &iteration_frequency,
                Doc("iterations between checkpoints, 0 or -1 for none").AtLeast(-1).MayChange());
  visitor.Field(
      "ROLLING_START", &rolling_start,
      Doc("epoch, from 1, from which one more checkpoint rolls along, -1 for none (ours)").AtLeast(-1).MayChange());
  visitor.Field("ROLLING_FREQUENCY", &rolling_frequency,
                Doc("train epochs after which the rolling checkpoint is replaced (ours)").AtLeast(1).MayChange());
}

void UpdateOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("optimizer: sgd, adam, adamw, lars, rmsprop"));
  visitor.Field("param_group_constructor", &param_group_constructor,
                Doc("rule that forms parameter groups: default, dino, lr_decay, linear_eval_heads"));
  visitor.Field("num_epochs", &num_epochs, Doc("length of training").Between(1, 100'000).Unit("epochs"));
  visitor.Field("grad_acc_steps", &batches_per_update, Doc("batches whose gradients make one update").AtLeast(1));
  visitor.Field("use_zero", &use_zero,
                Doc("ranks share the optimizer's work and state: each updates some of the parameters").MayChange());
}

void ModelNameOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("BASE_MODEL_NAME", &base_model_name, Doc("How trunk and heads are combined."));
}

void BatchSizeOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("BATCHSIZE_PER_REPLICA", &batch_size_per_replica, Doc("Batch size of one rank.").Between(1, 1 << 20));
}

void MeasuredOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("names", &names, Doc("what is measured in each phase"));
  visitor.Field("enable_training_meter", &enable_training_meter, Doc("measure in train phases, too"));
}

}  // namespace ssl
