// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/problem.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ssl {

std::string ConfigProblem::ToString() const { return absl::StrCat(location.ToString(), ": ", text); }

ConfigProblem WrongValue(const ConfigNode& node, absl::string_view path, absl::string_view expected) {
  return {node.location(), absl::StrCat(path, " is ", node.Describe(), ", expected ", expected), std::string(path)};
}

const ConfigNode* FindValue(const ConfigNode& config, absl::string_view path, std::vector<ConfigProblem>* problems) {
  if (path.empty()) return &config;
  const ConfigNode* node = &config;
  std::string known = "config";
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    if (!node->is_map()) {
      if (!node->is_null()) problems->push_back(WrongValue(*node, known, "a map"));
      return nullptr;
    }
    node = node->Find(part);
    if (node == nullptr) return nullptr;
    absl::StrAppend(&known, ".", part);
  }
  return node;
}

absl::Status ProblemsInOrder(const std::vector<ConfigProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n", [](std::string* text, const ConfigProblem& problem) {
    absl::StrAppend(text, problem.ToString());
  }));
}

std::vector<ConfigProblem> SortedProblems(std::vector<ConfigProblem> problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const ConfigProblem& left, const ConfigProblem& right) {
    return std::tie(left.location.file, left.location.line) < std::tie(right.location.file, right.location.line);
  });
  std::set<std::string> seen;
  std::vector<ConfigProblem> unique;
  for (ConfigProblem& problem : problems) {
    if (seen.insert(problem.ToString()).second) unique.push_back(std::move(problem));
  }
  return unique;
}

}  // namespace ssl
