// SPDX-License-Identifier: Apache-2.0
//
// config.hooks: hooks as United Perception configures them.
//
//   hooks:
//     - {type: grad_clipper, kwargs: {mode: moving_average, momentum: 0.9, tolerance: 5}}
//     - {type: grad_clipper, name: second_clipper, kwargs: {mode: pre_defined, max_norm: 10}}
//
// An entry turns its hook on. Without `name` it is the hook that the section of that hook configures, with kwargs in
// place of the section's values; with a `name` it is one more hook of that type, with defaults in place of them. Names
// that other programs have for a hook are ours once the configuration is resolved (foreign_hook_entries.h).
#ifndef SSL_HOOKS_HOOK_ENTRIES_H_
#define SSL_HOOKS_HOOK_ENTRIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

// The key `hooks`.
struct HookListOptions : public Options {
  ConfigNode hooks = ConfigNode::List();

  void VisitFields(FieldVisitor& visitor) override;
};

// One entry, as it stands there.
struct HookEntry : public Options {
  std::string type;  // of a hook or a metric sink
  std::string name;  // of the instance; "" when none is given
  ConfigNode kwargs = ConfigNode::Map();
  std::string path;  // "config.hooks.0"

  void VisitFields(FieldVisitor& visitor) override;
};

// The entries of `config`, the tree under "config". InvalidArgument, all problems at once, for entries of another form.
absl::StatusOr<std::vector<HookEntry>> ReadHookEntries(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_HOOKS_HOOK_ENTRIES_H_
