// SPDX-License-Identifier: Apache-2.0
//
// Hooks check_nan, checkpoint, ema, freeze_parameters, grad_clip, memory_summary, model_complexity, model_output_mask,
// perf_stats, phase_metrics, train_logger; metric sinks jsonl, tensorboard; the configuration sections HOOKS and
// MODEL.GRAD_CLIP; the functions that say which of them a configuration turns on.
#ifndef SSL_HOOKS_REGISTER_HOOKS_H_
#define SSL_HOOKS_REGISTER_HOOKS_H_

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

absl::Status RegisterHooks(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_REGISTER_HOOKS_H_
