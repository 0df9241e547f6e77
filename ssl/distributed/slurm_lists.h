// SPDX-License-Identifier: Apache-2.0
//
// SLURM's short forms of lists, as its environment variables hold them. Pure functions; thread-safe. A text of another
// form is InvalidArgument, which names it.
//
//   FirstHost("node[003-005,010],gpu1")  -> "node003"
//   CountHosts("node[003-005,010],gpu1") -> 5
//   TasksOnNode("2(x3),1", 3)            -> 1
//   CountTasks("2(x3),1")                -> 7 tasks on 4 nodes
#ifndef SSL_DISTRIBUTED_SLURM_LISTS_H_
#define SSL_DISTRIBUTED_SLURM_LISTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

inline constexpr int64_t kMostCounted = 1 << 30;

// The first host of SLURM_STEP_NODELIST: hosts or groups of them separated by commas; a group is a name with one or
// more [..] of numbers and ranges of numbers in it, leading zeros kept, such as "rack[1-2]node[01-16,20]".
absl::StatusOr<std::string> FirstHost(absl::string_view host_list);

// How many hosts such a list has; kMostCounted and more are that.
absl::StatusOr<int64_t> CountHosts(absl::string_view host_list);

// Tasks on node `node` (from 0) by SLURM_STEP_TASKS_PER_NODE: counts separated by commas, "N(xM)" for M nodes in a row.
absl::StatusOr<int64_t> TasksOnNode(absl::string_view tasks_per_node, int64_t node);

struct TaskCount {
  int64_t tasks = 0;
  int64_t nodes = 0;
};

// All of them; kMostCounted and more are that.
absl::StatusOr<TaskCount> CountTasks(absl::string_view tasks_per_node);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_SLURM_LISTS_H_
