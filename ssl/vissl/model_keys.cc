// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> ModelKeys() {
  KeyTableBuilder table;
  table.Ignored("MODEL.CUDA_CACHE", "a matter of memory; training is the same",
                {{"CLEAR_CUDA_CACHE", "false"}, {"CLEAR_FREQ", "100"}});
  table.Ignored("MODEL.SHARDED_DDP_SETUP", "OPTIMIZER.use_zero and self_supervision_fsdp_task share out instead",
                {{"USE_SDP", "false"}, {"reduce_buffer_size", "-1"}});
  table.Ignored("MODEL.FSDP_CONFIG", "a matter of memory and speed; number formats are those of MODEL.AMP_PARAMS",
                {{"AUTO_WRAP_THRESHOLD", "0"},
                 {"AMP_TYPE", "\"01\""},
                 {"FORCE_SYNC_CUDA", "false"},
                 {"flatten_parameters", "true"},
                 {"mixed_precision", "true"},
                 {"fp32_reduce_scatter", "false"},
                 {"compute_dtype", "float32"},
                 {"bucket_cap_mb", "0"},
                 {"clear_autocast_cache", "true"},
                 {"verbose", "true"}});
  table.Ignored("MODEL.WEIGHTS_INIT", "typo in VISSL's files", {{"PARAM_FILE", "\"\""}});
  table.Ignored("MODEL.TRUNK", "layout of files before 2021, which VISSL does not read either",
                {{"TRUNK_PARAMS", "{}"}});
  table.Ignored("MODEL.TRUNK.REGNET", "saves memory; training is the same",
                {{"stage_checkpoints", "[]"}, {"stage_checkpointing", "[]"}});
  return table.Take();
}

}  // namespace ssl
