// SPDX-License-Identifier: Apache-2.0
//
// engine_name=evaluate: what features are worth, whatever is known of the images: knn where the training set has two
// classes or more, and neighbors (knn_engine.h, neighbors_engine.h), whose sections and results these are.
#ifndef SSL_ENGINES_EVALUATE_ENGINE_H_
#define SSL_ENGINES_EVALUATE_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/engines/engine.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Engine>> MakeEvaluateEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATE_ENGINE_H_
