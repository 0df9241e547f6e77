// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/slurm_lists.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

absl::Status BadHosts(absl::string_view list) {
  return absl::InvalidArgumentError(
      absl::StrCat("SLURM's list of hosts is \"", list, "\", expected hosts such as \"node1,node[003-005,010]\""));
}

// Between brackets, "003-005,010" -> "003"; "" when it does not start with a number.
absl::string_view FirstNumber(absl::string_view numbers) {
  const absl::string_view first = numbers.substr(0, numbers.find_first_of(",-"));
  return IsNumber(first) ? first : absl::string_view();
}

bool IsHostCharacter(char c) { return absl::ascii_isgraph(c) && c != ']' && c != '(' && c != ')'; }

struct Count {
  int64_t tasks = 0;
  int64_t nodes = 0;
};

// "2(x3)" or "2"; nodes is 0 when it is neither.
Count ParseCount(absl::string_view text) {
  Count count;
  const size_t open = text.find("(x");
  absl::string_view nodes = "1";
  if (open != absl::string_view::npos) {
    nodes = text.substr(open + 2);
    if (!absl::ConsumeSuffix(&nodes, ")")) return {};
    text = text.substr(0, open);
  }
  if (!IsNumber(text) || !IsNumber(nodes)) return {};
  if (!absl::SimpleAtoi(text, &count.tasks) || !absl::SimpleAtoi(nodes, &count.nodes)) return {};
  return count;
}

}  // namespace

absl::StatusOr<std::string> FirstHost(absl::string_view host_list) {
  std::string host;
  for (absl::string_view rest = host_list; !rest.empty() && rest.front() != ',';) {
    if (rest.front() != '[') {
      if (!IsHostCharacter(rest.front())) return BadHosts(host_list);
      host += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    const size_t close = rest.find(']');
    if (close == absl::string_view::npos) return BadHosts(host_list);
    const absl::string_view number = FirstNumber(rest.substr(1, close - 1));
    if (number.empty()) return BadHosts(host_list);
    absl::StrAppend(&host, number);
    rest.remove_prefix(close + 1);
  }
  if (host.empty()) return BadHosts(host_list);
  return host;
}

absl::StatusOr<int64_t> TasksOnNode(absl::string_view tasks_per_node, int64_t node) {
  int64_t nodes_before = 0;
  for (const absl::string_view text : absl::StrSplit(tasks_per_node, ',')) {
    const Count count = ParseCount(text);
    if (count.nodes < 1 || count.tasks < 1) break;
    if (node - nodes_before < count.nodes) return count.tasks;
    nodes_before += count.nodes;
  }
  return absl::InvalidArgumentError(absl::StrCat("SLURM's tasks per node are \"", tasks_per_node,
                                                 "\", expected counts such as \"2(x3),1\" up to node ", node));
}

}  // namespace ssl
