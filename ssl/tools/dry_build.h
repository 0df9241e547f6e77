// SPDX-License-Identifier: Apache-2.0
//
// Builds what a run would build, and trains nothing: the last step of --check_config. Writes no files.
#ifndef SSL_TOOLS_DRY_BUILD_H_
#define SSL_TOOLS_DRY_BUILD_H_

#include <vector>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// root: {engine_name, config}, `config` resolved. First every engine, transform, schedule and meter
// by itself, and the optimizer, so that all their errors come at once; when there is none, the session of an
// engine_name that trains, up to its first step, and the labels of its data set against the model's outputs. An empty
// result: all is well. A status that has no place gets the one of the component.
std::vector<absl::Status> DryBuild(const ConfigNode& root, const Registries& registries);

}  // namespace ssl

#endif  // SSL_TOOLS_DRY_BUILD_H_
