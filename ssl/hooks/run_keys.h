// SPDX-License-Identifier: Apache-2.0
//
// Settings of the run by names of their own: an entry of config.hooks whose hook is configured elsewhere, a block of
// another program. They are set in their own places before anything is built.
//
//   hooks: [{type: reload, kwargs: {mini_epoch: 4}}]  ->  DATA: {TRAIN: {MINI_EPOCHS: 4}}
#ifndef SSL_HOOKS_RUN_KEYS_H_
#define SSL_HOOKS_RUN_KEYS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"
#include "ssl/core/registries.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// The options of a hook whose keys are settings of the run derive from this.
class RunKeysOptions : public OncePerRunOptions {
 public:
  // Keys of the hook, and where the run has them, relative to "config": {"mini_epoch", "DATA.TRAIN.MINI_EPOCHS"}.
  virtual std::map<std::string, std::string> run_keys() const = 0;
};

// Whether somebody has set a key: in a file, on the command line, or in code, where only another value than the default
// shows it. Either may be nullptr: there is none.
bool IsSet(const ConfigNode* value, const ConfigNode* by_default);

// Sets `ours`, relative to "config", to `value`, which its user has written for `theirs` ("config.trainer.max_epoch").
// Problems, in the user's names: a value that the key does not take, and another one that somebody has set there.
void SetRunKey(absl::string_view theirs, const ConfigNode& value, const std::string& ours, const Registries& registries,
               ConfigNode* config, std::vector<ConfigProblem>* problems);

// Does so for all entries of config.hooks. Applying it twice changes nothing. config: the tree under "config".
absl::Status ResolveRunKeys(const Registries& registries, ConfigNode* config);

}  // namespace ssl

#endif  // SSL_HOOKS_RUN_KEYS_H_
