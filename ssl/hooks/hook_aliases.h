// SPDX-License-Identifier: Apache-2.0
//
// What other programs call our hooks: the one table, read where the list config.hooks is resolved
// (foreign_hook_entries.h) and by the page docs/hooks.md.
#ifndef SSL_HOOKS_HOOK_ALIASES_H_
#define SSL_HOOKS_HOOK_ALIASES_H_

#include <map>
#include <string>
#include <vector>

namespace ssl {

struct HookAlias {
  std::string program;  // "United Perception"
  std::string name;     // there
  std::string hook;     // here: a hook, or a metric sink
  // Theirs to ours, where they differ; a nested one as "vis_gt.kwargs.vis_dir".
  std::map<std::string, std::string> keys;
  // Values of keys of ours that neither the entry nor the configuration sets: what the other program documents, where
  // ours differs.
  std::map<std::string, std::string> defaults = {};
  // Their keys that are none here, each with a sentence for their users.
  std::map<std::string, std::string> without = {};
  // Their keys that are taken and have no effect here, each with a sentence for their users.
  std::map<std::string, std::string> idle = {};
};

// Sorted by program and name. A name that several programs use means the same hook in all of them.
const std::vector<HookAlias>& HookAliases();

// A hook of another program that is none here.
struct HookElsewhere {
  std::string program;
  std::string name;
  std::string instead;  // a sentence for its users
};

// Sorted by program and name.
const std::vector<HookElsewhere>& HooksElsewhere();

}  // namespace ssl

#endif  // SSL_HOOKS_HOOK_ALIASES_H_
