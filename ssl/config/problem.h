// SPDX-License-Identifier: Apache-2.0
//
// One thing that is wrong with a value of a config tree, with its place, so that the findings of several readers can be
// put in the order of the files before a person sees them. Plain values; safe from any thread.
//
//   problems.push_back(WrongValue(node, "config.MODEL", "a map"));
//   return ProblemsInOrder(SortedProblems(std::move(problems)));
#ifndef SSL_CONFIG_PROBLEM_H_
#define SSL_CONFIG_PROBLEM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

struct ConfigProblem {
  SourceLocation location;
  std::string text;       // Without the place.
  std::string path = {};  // Of a wrong value, as in `text`: "config.LOSS.name"; "" for an unknown key.

  // "file:line: text".
  std::string ToString() const;
};

// "config.MODEL is '3', expected a map" at the place of `node`, which stands at `path`.
ConfigProblem WrongValue(const ConfigNode& node, absl::string_view path, absl::string_view expected);

// The value at `path` of `config`, the tree under "config"; nullptr when there is none. What stands on the way and is
// neither a map nor null is a problem.
const ConfigNode* FindValue(const ConfigNode& config, absl::string_view path, std::vector<ConfigProblem>* problems);

// Ok without problems; else InvalidArgument with one line each, in the order given.
absl::Status ProblemsInOrder(const std::vector<ConfigProblem>& problems);

// Sorted by file and line (equal places keep their order), and each line once.
std::vector<ConfigProblem> SortedProblems(std::vector<ConfigProblem> problems);

}  // namespace ssl

#endif  // SSL_CONFIG_PROBLEM_H_
