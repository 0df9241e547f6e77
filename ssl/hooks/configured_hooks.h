// SPDX-License-Identifier: Apache-2.0
//
// Which hooks and metric sinks a configuration turns on. One ordered table each: a new hook is one row there and one
// registration, not a branch elsewhere.
//
//   SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Hook>> hooks, MakeConfiguredHooks(context));
#ifndef SSL_HOOKS_CONFIGURED_HOOKS_H_
#define SSL_HOOKS_CONFIGURED_HOOKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"

namespace ssl {

// perf_stats (HOOKS.PERF_STATS.MONITOR_PERF_STATS, or a ROLLING_BTIME_FREQ above 0), check_nan (HOOKS.CHECK_NAN),
// model_output_mask (METERS.model_output_mask), grad_clip (MODEL.GRAD_CLIP.USE_GRAD_CLIP), freeze_parameters (a
// MODEL.TEMP_FROZEN_PARAMS_ITER_MAP that is not empty), ema (HOOKS.EMA_MODEL.SAVE_EMA_MODEL or ENABLE_EMA_METERS),
// checkpoint, model_complexity (HOOKS.MODEL_COMPLEXITY.COMPUTE_COMPLEXITY), phase_metrics, train_logger and
// memory_summary (HOOKS.MEMORY_SUMMARY.PRINT_MEMORY_SUMMARY or DUMP_MEMORY_ON_EXCEPTION), made through
// context.registries.hooks. A key that is missing means VISSL's default.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeConfiguredHooks(const BuildContext& context);

// jsonl (<run directory>/metrics.jsonl) for a run that keeps files, and tensorboard (<run directory>/tb_logs) with
// HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD.
absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> MakeConfiguredSinks(const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_CONFIGURED_HOOKS_H_
