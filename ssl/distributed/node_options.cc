// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/node_options.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/slurm_lists.h"

namespace ssl {
namespace {

constexpr char kAuto[] = "auto";

absl::Status KeyError(absl::string_view key, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("config.DISTRIBUTED.", key, " is \"", value, "\", expected ", expected));
}

absl::StatusOr<int64_t> NodeOf(const NodeOptions& options, const EnvironmentReader& reader) {
  if (!options.node.has_value() && reader.Has("SLURM_STEP_NODELIST")) {
    return reader.Integer("SLURM_NODEID", 0, options.nodes - 1, absl::StrCat("(NUM_NODES is ", options.nodes, ")"));
  }
  const int64_t node = options.node.value_or(0);
  if (node >= 0 && node < options.nodes) return node;
  return absl::InvalidArgumentError(absl::StrCat("the number of this node is ", node, ", expected 0 to ",
                                                 options.nodes - 1, " (config.DISTRIBUTED.NUM_NODES is ", options.nodes,
                                                 ")"));
}

// A file for several hosts names the first one where it is run, not where it is written: nothing is wrong with it.
absl::Status FirstHostIsNotNamed(const NodeOptions& options) {
  const bool is_auto = options.run_id == kAuto;
  return absl::UnimplementedError(absl::StrCat(
      "config.DISTRIBUTED.RUN_ID is \"", options.run_id, "\", expected HOST:PORT of the first node (NUM_NODES is ",
      options.nodes, "); add config.DISTRIBUTED.NUM_NODES=1", is_auto ? "" : " config.DISTRIBUTED.RUN_ID=auto",
      " to run on this one alone, or start it by srun"));
}

// The last colon parts host and port: an IPv6 address has colons of its own.
absl::Status ReadHostAndPort(const NodeOptions& options, WorldPlace* place) {
  const absl::string_view text = options.run_id;
  const size_t colon = text.rfind(':');
  int64_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 ||
      port > kMostPort) {
    return KeyError("RUN_ID", text, "HOST:PORT of the first node, or auto with one node (INIT_METHOD is tcp)");
  }
  place->host = std::string(text.substr(0, colon));
  place->port = static_cast<int>(port);
  return absl::OkStatus();
}

absl::Status ReadTcp(const NodeOptions& options, const EnvironmentReader&, WorldPlace* place) {
  const bool is_auto = options.run_id == kAuto;
  if (is_auto && options.nodes == 1) return absl::OkStatus();
  if (options.nodes > 1 && !absl::StrContains(options.run_id, ':')) return FirstHostIsNotNamed(options);
  return ReadHostAndPort(options, place);
}

absl::Status ReadFile(const NodeOptions& options, const EnvironmentReader& reader, WorldPlace* place) {
  if (options.run_id == kAuto) return ReadTcp(options, reader, place);
  if (options.run_id.empty()) return KeyError("RUN_ID", "", "a path that all ranks reach (INIT_METHOD is file)");
  place->store_file = options.run_id;
  return absl::OkStatus();
}

absl::Status ReadEnvironment(const NodeOptions&, const EnvironmentReader& reader, WorldPlace* place) {
  SSL_ASSIGN_OR_RETURN(place->host, reader.Text("MASTER_ADDR"));
  SSL_ASSIGN_OR_RETURN(place->port, reader.Integer("MASTER_PORT", 1, kMostPort));
  return absl::OkStatus();
}

struct InitMethod {
  const char* name;
  absl::Status (*read)(const NodeOptions& options, const EnvironmentReader& reader, WorldPlace* place);
};
constexpr InitMethod kInitMethods[] = {{"tcp", ReadTcp}, {"file", ReadFile}, {"env", ReadEnvironment}};

absl::Status ReadMeetingPoint(const NodeOptions& options, const EnvironmentReader& reader, WorldPlace* place) {
  for (const InitMethod& method : kInitMethods) {
    if (options.init_method == method.name) return method.read(options, reader, place);
  }
  return KeyError("INIT_METHOD", options.init_method, "tcp, env or file");
}

}  // namespace

absl::StatusOr<WorldPlace> PlaceFromOptions(const NodeOptions& options, const EnvironmentVariable& variable) {
  const EnvironmentReader reader(variable);
  SSL_ASSIGN_OR_RETURN(const int64_t node, NodeOf(options, reader));
  WorldPlace place;
  place.source = "config.DISTRIBUTED";
  place.rank = node * options.ranks_per_node;
  place.size = options.nodes * options.ranks_per_node;
  place.local_size = options.ranks_per_node;
  SSL_RETURN_IF_ERROR(ReadMeetingPoint(options, reader, &place));
  return place;
}

absl::Status CheckTasks(const WorldPlace& place, const NodeOptions& options, const EnvironmentVariable& variable) {
  if (place.source != kSlurmSource || options.ranks_per_node == 1) return absl::OkStatus();
  const EnvironmentReader reader(variable);
  SSL_ASSIGN_OR_RETURN(const std::string tasks_per_node, reader.Text("SLURM_STEP_TASKS_PER_NODE"));
  // As many nodes as tasks have one each.
  if (!TasksOnNode(tasks_per_node, place.size - 1).ok()) return absl::OkStatus();
  return KeyError(
      "NUM_PROC_PER_NODE", absl::StrCat(options.ranks_per_node),
      absl::StrCat("1, the task that srun has started on each of ", place.size,
                   " nodes (SLURM_STEP_TASKS_PER_NODE is \"", tasks_per_node,
                   "\"); srun --ntasks-per-node=", options.ranks_per_node, " starts as many ranks on each"));
}

}  // namespace ssl
