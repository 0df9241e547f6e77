// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> LossKeys() {
  KeyTableBuilder table;
  table.Ignored("LOSS", "typo in VISSL's files", {{"ignore_index", "-1"}});
  table.Ignored("LOSS.swav_loss", "messages about values that are not finite go to the log", {{"output_dir", "\".\""}});
  table.Ignored("LOSS.swav_loss", "follows from queue_length and the number of ranks",
                {{"queue.local_queue_length", "0"}});
  table.Ignored("LOSS.dino_loss", "not read by VISSL either", {{"normalize_last_layer", "true"}});
  table.NotYet("LOSS.nce_loss_with_memory", "loss 'nce_loss_with_memory' is missing",
               {{"loss_type", "nce"},
                {"norm_embedding", "true"},
                {"temperature", "0.07"},
                {"loss_weights", "[1.0]"},
                {"norm_constant", "-1.0"},
                {"update_mem_with_emb_index", "-100"},
                {"negative_sampling_params.num_negatives", "16000"},
                {"negative_sampling_params.type", "random"},
                {"memory_params.memory_size", "-1"},
                {"memory_params.embedding_dim", "128"},
                {"memory_params.momentum", "0.5"},
                {"memory_params.norm_init", "true"},
                {"memory_params.update_mem_on_forward", "true"},
                {"num_train_samples", "-1"},
                {"ignore_index", "-1"}});
  table.NotYet("LOSS.swav_momentum_loss", "loss 'swav_momentum_loss' is missing",
               {{"embedding_dim", "128"},
                {"temperature", "0.1"},
                {"use_double_precision", "false"},
                {"normalize_last_layer", "true"},
                {"num_iters", "3"},
                {"epsilon", "0.05"},
                {"num_crops", "2"},
                {"crops_for_assign", "[0, 1]"},
                {"num_prototypes", "[3000]"},
                {"queue.queue_length", "0"},
                {"queue.start_iter", "0"},
                {"queue.local_queue_length", "0"},
                {"momentum", "0.99"},
                {"momentum_eval_mode_iter_start", "0"},
                {"shk_powerlaw", "0.0"}});
  table.NotYet("LOSS.dino_loss", "loss 'dino_loss' is missing",
               {{"momentum", "0.996"},
                {"student_temp", "0.1"},
                {"teacher_temp_min", "0.04"},
                {"teacher_temp_max", "0.07"},
                {"teacher_temp_warmup_iters", "37500"},
                {"crops_for_teacher", "[0, 1]"},
                {"ema_center", "0.9"},
                {"output_dim", "65536"},
                {"num_crops", "10"}});
  table.NotYet("LOSS.ibot_loss", "loss 'ibot_loss' is missing",
               {{"teacher_momentum", "0.996"},
                {"warmup_teacher_temp", "0.04"},
                {"teacher_temp", "0.04"},
                {"warmup_teacher_patch_temp", "0.04"},
                {"teacher_patch_temp", "0.07"},
                {"warmup_teacher_temp_epochs", "30"},
                {"student_temp", "0.1"},
                {"center_momentum", "0.9"},
                {"center_momentum2", "0.9"},
                {"lambda1", "1.0"},
                {"lambda2", "1.0"},
                {"mim_start_epoch", "0"},
                {"num_global_crops", "2"},
                {"num_local_crops", "8"},
                {"out_dim", "8192"},
                {"patch_out_dim", "8192"},
                {"num_epochs", "10"}});
  table.NotYet("LOSS.msn_loss", "loss 'msn_loss' is missing",
               {{"momentum", "0.996"}, {"temperature", "0.1"}, {"output_dim", "1024"}});
  table.NotYet("LOSS.deepclusterv2_loss", "loss 'deepclusterv2_loss' is missing",
               {{"DROP_LAST", "true"},
                {"BATCHSIZE_PER_REPLICA", "256"},
                {"num_crops", "2"},
                {"temperature", "0.1"},
                {"num_clusters", "[3000, 3000, 3000]"},
                {"kmeans_iters", "10"},
                {"memory_params.crops_for_mb", "[0]"},
                {"memory_params.embedding_dim", "128"},
                {"num_train_samples", "-1"}});
  return table.Take();
}

}  // namespace ssl
