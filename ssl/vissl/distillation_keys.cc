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
  table.NotYet("DISTILLATION", "distillation is missing",
               {{"eager_teacher_init", "false"},
                {"TEACHER_MODEL.BASE_MODEL_NAME", "multi_input_output_model"},
                {"TEACHER_MODEL.INPUT_TYPE", "rgb"},
                {"TEACHER_MODEL.MULTI_INPUT_HEAD_MAPPING", "[]"},
                {"TEACHER_MODEL.SINGLE_PASS_EVERY_CROP", "false"},
                {"TEACHER_MODEL.TRUNK.NAME", "resnet"},
                {"TEACHER_MODEL.HEAD.PARAMS", "[[mlp, {dims: [2048, 1000]}]]"},
                {"TEACHER_MODEL.HEAD.BATCHNORM_EPS", "1e-5"},
                {"TEACHER_MODEL.HEAD.BATCHNORM_MOMENTUM", "0.1"},
                {"TEACHER_MODEL.HEAD.PARAMS_MULTIPLIER", "1.0"},
                {"TEACHER_MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING", "false"},
                {"TEACHER_MODEL.ACTIVATION_CHECKPOINTING.NUM_ACTIVATION_CHECKPOINTING_SPLITS", "2"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON", "true"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.FREEZE_TRUNK_ONLY", "false"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.FREEZE_TRUNK_AND_HEAD", "true"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.EXTRACT_TRUNK_FEATURES_ONLY", "false"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.EVAL_TRUNK_AND_HEAD", "true"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.ASSERT_HEAD_LAYER_SHAPE_INIT", "true"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.SHOULD_FLATTEN_FEATS", "true"},
                {"TEACHER_MODEL.FEATURE_EVAL_SETTINGS.LINEAR_EVAL_FEAT_POOL_OPS_MAP", "[]"},
                {"TEACHER_MODEL.FSDP_CONFIG.AUTO_SETUP_FSDP", "false"},
                {"TEACHER_MODEL.FSDP_CONFIG.AUTO_WRAP_THRESHOLD", "0"},
                {"TEACHER_MODEL.FSDP_CONFIG.FORCE_SYNC_CUDA", "false"},
                {"TEACHER_MODEL.FSDP_CONFIG.flatten_parameters", "true"},
                {"TEACHER_MODEL.FSDP_CONFIG.mixed_precision", "true"},
                {"TEACHER_MODEL.FSDP_CONFIG.fp32_reduce_scatter", "false"},
                {"TEACHER_MODEL.FSDP_CONFIG.compute_dtype", "float32"},
                {"TEACHER_MODEL.FSDP_CONFIG.bucket_cap_mb", "0"},
                {"TEACHER_MODEL.FSDP_CONFIG.clear_autocast_cache", "true"},
                {"TEACHER_MODEL.FSDP_CONFIG.verbose", "true"},
                {"TEACHER_MODEL.WEIGHTS_INIT.PARAMS_FILE", "\"please specify teacher model weights\""},
                {"TEACHER_MODEL.WEIGHTS_INIT.STATE_DICT_KEY_NAME", "classy_state_dict"},
                {"TEACHER_MODEL.WEIGHTS_INIT.SKIP_LAYERS", "[num_batches_tracked]"},
                {"TEACHER_MODEL.WEIGHTS_INIT.REMOVE_PREFIX", "\"\""},
                {"TEACHER_MODEL.WEIGHTS_INIT.APPEND_PREFIX", "\"\""}});
  return table.Take();
}

}  // namespace ssl
