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

// check_nan (HOOKS.CHECK_NAN), freeze_parameters (a MODEL.TEMP_FROZEN_PARAMS_ITER_MAP that is not empty), checkpoint
// and train_logger, made through context.registries.hooks. A key that is missing means VISSL's default.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeConfiguredHooks(const BuildContext& context);

// jsonl (<run directory>/metrics.jsonl) for a run that keeps files, and tensorboard (<run directory>/tb_logs) with
// HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD.
absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> MakeConfiguredSinks(const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_CONFIGURED_HOOKS_H_
