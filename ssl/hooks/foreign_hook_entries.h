// SPDX-License-Identifier: Apache-2.0
//
// Entries of config.hooks by the names of other programs (hook_aliases.h), made entries by ours before anything is
// built, so that the resolved configuration says what they come to:
//
//   {type: PeriodicWriter}                         {type: train_logger, kwargs: {LOG_FREQUENCY: 20}}
//   {type: EvalHook, kwargs: {eval_period: 500}}   {type: eval, kwargs: {ITER_FREQUENCY: 500, EPOCH_FREQUENCY: -1}}
//
// A run that is started again with its own train_config.yaml, in which every key is set, then has the same hooks, and
// what it compares at a resume is what they mean.
#ifndef SSL_HOOKS_FOREIGN_HOOK_ENTRIES_H_
#define SSL_HOOKS_FOREIGN_HOOK_ENTRIES_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// Keys of kwargs get our names; the other program's default, where ours differs, stands where neither the entry nor,
// for the hook that a section configures, a file, the command line or a host sets the key. Values keep their places.
// InvalidArgument, all problems of the list at once and in the user's names, for keys and values that are wrong.
// A name that the host has registered for a hook or sink of its own stays the host's. Applying it twice changes
// nothing. config: the tree under "config".
absl::Status ResolveForeignHookEntries(const Registries& registries, ConfigNode* config);

}  // namespace ssl

#endif  // SSL_HOOKS_FOREIGN_HOOK_ENTRIES_H_
