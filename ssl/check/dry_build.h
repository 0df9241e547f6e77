// SPDX-License-Identifier: Apache-2.0
//
// Builds what a run would build, and trains nothing: the last step of CheckConfig. Writes no files.
#ifndef SSL_CHECK_DRY_BUILD_H_
#define SSL_CHECK_DRY_BUILD_H_

#include <vector>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// What keeps the engines of `root`, as below, from computing on MACHINE.DEVICE here: Unimplemented or NotFound
// (ssl/core/run_device.h). OK for those that do not, and for a tree of which engines cannot be made, as DryBuild says.
absl::Status CheckDeviceIsHere(const ConfigNode& root, const Registries& registries);

// Without MACHINE.DEVICE, which may be missing here. root: {engine_name, config}, `config` resolved. First every
// engine, transform, schedule and meter by itself, the optimizer, and, of an engine_name that trains, the model, the
// method and the data sets, so that all their errors come at once. When there is none, the session of an engine_name
// that trains, up to its first step. The labels of the training set are checked in any case. An empty result: all is
// well. A status that has no place gets the one of the component.
std::vector<absl::Status> DryBuild(const ConfigNode& root, const Registries& registries);

}  // namespace ssl

#endif  // SSL_CHECK_DRY_BUILD_H_
