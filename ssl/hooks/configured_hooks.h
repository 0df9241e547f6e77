// SPDX-License-Identifier: Apache-2.0
//
// Which hooks and metric sinks a configuration turns on: those whose options (ssl/core/component.h) say so, and those
// that the list config.hooks names (hook_entries.h).
//
//   SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Hook>> hooks, MakeConfiguredHooks(context));
#ifndef SSL_HOOKS_CONFIGURED_HOOKS_H_
#define SSL_HOOKS_CONFIGURED_HOOKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"

namespace ssl {

// One string that stands for a list of it (Doc::MayBeOne) becomes that list, in the sections of hooks and sinks and in
// the entries of config.hooks, by our names. Values that are wrong stay. config: the tree under "config".
absl::Status WriteListsOfHooksInFull(const Registries& registries, ConfigNode* config);

// Made through context.registries.hooks, in the order in which they run within an event: by stage, then by rank
// (Component::rank), then by name, those that only the list names last and in its order. InvalidArgument, with places,
// for values that are wrong, whether their hook is turned on or not.
absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeConfiguredHooks(const BuildContext& context);

// By name. None for a run that keeps no files.
absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> MakeConfiguredSinks(const BuildContext& context);

// What the sinks of MakeConfiguredSinks leave in the run's directory, as they declare it (ComponentOptions::leaves).
// Makes none.
absl::StatusOr<std::vector<std::string>> FilesOfConfiguredSinks(const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_CONFIGURED_HOOKS_H_
