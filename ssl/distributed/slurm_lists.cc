// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/slurm_lists.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

// "2(x3)" or "2": tasks of each of so many nodes; nodes is 0 when it is neither.
TaskCount ParseCount(absl::string_view text) {
  TaskCount count;
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

absl::Status BadCounts(absl::string_view tasks_per_node, absl::string_view up_to) {
  return absl::InvalidArgumentError(
      absl::StrCat("SLURM's tasks per node are \"", tasks_per_node, "\", expected counts such as \"2(x3),1\"", up_to));
}

// Of two counts that are at most kMostCounted.
int64_t Capped(int64_t count) { return std::min(count, kMostCounted); }

// Between brackets, "003-005,010" -> 4; 0 when it is something else.
int64_t CountNumbers(absl::string_view numbers) {
  int64_t total = 0;
  for (const absl::string_view range : absl::StrSplit(numbers, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
    int64_t first = 0;
    int64_t last = 0;
    if (!IsNumber(ends.first) || !absl::SimpleAtoi(ends.first, &first)) return 0;
    const bool is_one = ends.first.size() == range.size();
    if (!is_one && (!IsNumber(ends.second) || !absl::SimpleAtoi(ends.second, &last) || last < first)) return 0;
    total = Capped(total + (is_one ? 1 : Capped(last - first) + 1));
  }
  return total;
}

}  // namespace

absl::StatusOr<int64_t> CountHosts(absl::string_view host_list) {
  int64_t total = 0;
  int64_t here = 1;  // hosts of the name in progress: the product of its groups
  for (absl::string_view rest = host_list; !rest.empty();) {
    size_t last = 0;  // of what is looked at
    if (rest.front() == '[') {
      last = rest.find(']');
      if (last == absl::string_view::npos) return BadHosts(host_list);
      const int64_t numbers = CountNumbers(rest.substr(1, last - 1));
      if (numbers == 0) return BadHosts(host_list);
      here = Capped(here * numbers);
    } else if (rest.front() == ',') {
      total = Capped(total + here);
      here = 1;
    } else if (!IsHostCharacter(rest.front())) {
      return BadHosts(host_list);
    }
    rest.remove_prefix(last + 1);
  }
  return Capped(total + here);
}

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
    const TaskCount count = ParseCount(text);
    if (count.nodes < 1 || count.tasks < 1) break;
    if (node - nodes_before < count.nodes) return count.tasks;
    nodes_before += count.nodes;
  }
  return BadCounts(tasks_per_node, absl::StrCat(" up to node ", node));
}

absl::StatusOr<TaskCount> CountTasks(absl::string_view tasks_per_node) {
  TaskCount all;
  for (const absl::string_view text : absl::StrSplit(tasks_per_node, ',')) {
    const TaskCount count = ParseCount(text);
    if (count.nodes < 1 || count.tasks < 1) return BadCounts(tasks_per_node, "");
    all.tasks = Capped(all.tasks + Capped(count.tasks) * Capped(count.nodes));
    all.nodes = Capped(all.nodes + Capped(count.nodes));
  }
  return all;
}

}  // namespace ssl
