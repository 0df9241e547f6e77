// SPDX-License-Identifier: Apache-2.0
//
// engine_name=train: trains to the end, or to a stop request, after which the same command goes on.
// Results: {"train_seconds": seconds spent training, summed over the sessions of one run that ended in order}, and
// where training images could not be read, {"broken_images": {"total": 3, "by_kind": {"damaged": 2, ...}}}: how many of
// the whole run, each once, whatever its threads, ranks and stops (ssl/hooks/broken_images_hook.h).
#ifndef SSL_ENGINES_TRAIN_ENGINE_H_
#define SSL_ENGINES_TRAIN_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/engines/engine.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Engine>> MakeTrainEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_TRAIN_ENGINE_H_
