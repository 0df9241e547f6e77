// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/key_tables.h"

#include "ssl/vissl/key_table_builder.h"

namespace ssl {

std::vector<CompatibilityKey> RunKeys() {
  KeyTableBuilder table;
  table.Ignored("", "--print_config prints the configuration, and train_config.yaml in the run directory keeps it",
                {{"VERBOSE", "false"}});
  table.Ignored("", "batches come from threads of one process", {{"MULTI_PROCESSING_METHOD", "forkserver"}});
  table.Ignored("", "typo in VISSL's files", {{"MONITOR_PERF_STATS", "false"}});
  table.NotYet("MONITORING", "statistics of activations are not recorded", {{"MONITOR_ACTIVATION_STATISTICS", "0"}});
  table.Ignored("HOOKS", "nvidia-smi shows it; training is the same", {{"LOG_GPU_STATS", "true"}});
  table.Ignored("HOOKS.TENSORBOARD_SETUP", "not read by VISSL either",
                {{"LOG_DIR", "\".\""}, {"EXPERIMENT_LOG_DIR", "\"tensorboard\""}});
  table.Ignored("HOOKS.TENSORBOARD_SETUP", "events are written as they come", {{"FLUSH_EVERY_N_MIN", "5"}});
  table.Ignored("HOOKS.TENSORBOARD_SETUP", "histograms are not written; training is the same",
                {{"LOG_PARAMS", "true"}, {"LOG_PARAMS_GRADIENTS", "true"}, {"LOG_PARAMS_EVERY_N_ITERS", "310"}});
  table.NotYet("PROFILING", "memory is not told layer by layer", {{"MEMORY_PROFILING.TRACK_BY_LAYER_MEMORY", "false"}});
  table.Ignored("PROFILING", "traces are in <run directory>/profile", {{"OUTPUT_FOLDER", "\".\""}});
  table.Ignored("PROFILING.RUNTIME_PROFILING", "what runs on this device is recorded",
                {{"PROFILE_CPU", "true"}, {"PROFILE_GPU", "true"}, {"LEGACY_PROFILER", "false"}});
  table.Ignored("CHECKPOINT", "a run has one directory", {{"APPEND_DISTR_RUN_ID", "false"}});
  table.NotYet("CHECKPOINT", "checkpoints are kept on disk only", {{"BACKEND", "disk"}});
  table.NotYet("CHECKPOINT", "a run goes on from its newest intact checkpoint",
               {{"LATEST_CHECKPOINT_RESUME_FILE_NUM", "1"}});
  table.Ignored("CHECKPOINT", "MANIFEST.json says what a checkpoint holds; links are not needed",
                {{"USE_SYMLINK_CHECKPOINT_FOR_RESUME", "false"}});
  table.Ignored("DISTRIBUTED", "typo in VISSL's files", {{"DISTR_ON", "true"}});
  table.Ignored("DISTRIBUTED", "gradients are always reduced by our own buckets",
                {{"MANUAL_GRADIENT_REDUCTION", "false"}});
  for (const char* schedule : {"OPTIMIZER.param_schedulers.lr", "OPTIMIZER.param_schedulers.lr_head"}) {
    table.Ignored(schedule, "OPTIMIZER.num_epochs counts, as in VISSL", {{"num_epochs", "null"}});
  }
  table.NotYet("SLURM", "jobs are not submitted; start ssl_main with sbatch", {{"USE_SLURM", "false"}});
  table.Ignored("SLURM", "an option of sbatch",
                {{"NAME", "vissl"},
                 {"COMMENT", "\"vissl job\""},
                 {"PARTITION", "\"\""},
                 {"LOG_FOLDER", "\".\""},
                 {"TIME_HOURS", "72"},
                 {"TIME_MINUTES", "0"},
                 {"CONSTRAINT", "\"\""},
                 {"MEM_GB", "250"},
                 {"PORT_ID", "40050"},
                 {"NUM_CPU_PER_PROC", "8"},
                 {"ADDITIONAL_PARAMETERS", "{}"}});
  return table.Take();
}

}  // namespace ssl
