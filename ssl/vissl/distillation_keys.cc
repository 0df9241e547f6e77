// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> DistillationKeys() {
  KeyTableBuilder table;
  table.NotYet("LOSS.distillation_loss", "loss 'distillation_loss' is missing",
               {{"soft_target_alpha", "0.9"}, {"temperature", "1.0"}, {"loss_type", "cross_entropy"}});
  table.NotYet("LOSS.swav_distillation_loss", "loss 'swav_distillation_loss' is missing",
               {{"temperature", "0.1"},
                {"use_double_precision", "false"},
                {"num_iters", "3"},
                {"epsilon", "0.03"},
                {"num_crops", "6"},
                {"num_prototypes", "[3000]"},
                {"output_dir", "\".\""},
                {"temp_hard_assignment_iters", "0"},
                {"local_queue_length", "0"},
                {"queue_start_iter", "0"},
                {"normalize_student_feats", "false"},
                {"use_student_prototypes", "true"},
                {"use_teacher_prototypes", "false"},
                {"use_two_crops_for_teacher", "true"},
                {"swapped_assignment", "false"}});
  table.NotYet("LOSS.dino_distillation_loss", "loss 'dino_distillation_loss' is missing",
               {{"swapped_assignment", "false"},
                {"teacher_num_crops", "2"},
                {"teacher_temperature", "0.07"},
                {"student_num_crops", "10"},
                {"student_temperature", "0.1"}});
  table.NotYet("LOSS.ibot_distillation_loss", "loss 'ibot_distillation_loss' is missing",
               {{"swapped_assignment", "false"},
                {"use_teacher_prototypes", "false"},
                {"num_global_crops", "2"},
                {"student_num_crops", "12"},
                {"student_temp", "0.1"},
                {"teacher_temp", "0.07"},
                {"teacher_patch_temp", "0.07"},
                {"lambda1", "1.0"},
                {"lambda2", "1.0"}});
  table.NotYet("LOSS.msn_distillation_loss", "loss 'msn_distillation_loss' is missing",
               {{"swapped_assignment", "false"},
                {"student_temperature", "0.1"},
                {"teacher_num_crops", "2"},
                {"student_num_crops", "12"}});
  // As in VISSL, the teacher may have every key that MODEL has.
  table.NotYet("DISTILLATION", "distillation is missing", {{"eager_teacher_init", "false"}, {"TEACHER_MODEL", "{}"}});
  return table.Take();
}

}  // namespace ssl
