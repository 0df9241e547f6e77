// SPDX-License-Identifier: Apache-2.0
//
// engine_name=estimate: how long a training with this configuration will take, measured on its first steps, whose
// result is thrown away: no files, no hooks of the configuration, and the training that follows is bitwise the same.
// Test phases, checkpoints and a wait for other work of the machine are not in it. Collective.
// Results: {"estimate": {"updates", "seconds_per_update", "seconds"}}.
#ifndef SSL_ENGINES_ESTIMATE_ENGINE_H_
#define SSL_ENGINES_ESTIMATE_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/engines/engine.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Engine>> MakeEstimateEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_ESTIMATE_ENGINE_H_
