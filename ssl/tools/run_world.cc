// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_world.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/node_options.h"
#include "ssl/distributed/world.h"

namespace ssl {
namespace {

constexpr int64_t kMostRanks = 1 << 20;

// N of "local:N"; 0 without the flag.
absl::StatusOr<int64_t> LaunchedRanks(const LaunchFlags& flags) {
  if (flags.launch.empty()) return 0;
  absl::string_view count = flags.launch;
  int64_t ranks = 0;
  if (absl::ConsumePrefix(&count, "local:") && absl::SimpleAtoi(count, &ranks) && ranks >= 1 && ranks <= kMostRanks) {
    return ranks;
  }
  return absl::InvalidArgumentError(absl::StrCat("command line: --launch is '", flags.launch,
                                                 "', expected local:N, such as local:4 for 4 ranks on this host"));
}

bool IsOfEnvironment(const WorldPlace& place) { return place.source != WorldPlace().source; }

absl::Status Contradiction(absl::string_view flag, const WorldPlace& place) {
  return absl::InvalidArgumentError(absl::StrCat(
      "command line: ", flag, " says how this command starts ranks, and by ", place.source, " it is rank ", place.rank,
      " of ", place.size, ", with ", place.local_size, " on this host: leave out one of the two"));
}

// A rank that this command has started has its flags, too: of --restarts nothing else than the starter tells.
absl::Status CheckFlagsOfRank(const LaunchFlags& flags, int64_t launched, const WorldPlace& place,
                              bool is_of_our_launcher) {
  const bool is_alone = place.local_size == place.size;
  if (launched > 0 && (launched != place.local_size || !is_alone)) {
    return Contradiction(absl::StrCat("--launch=", flags.launch), place);
  }
  if (flags.node >= 0 && flags.node != place.rank / place.local_size) {
    return Contradiction(absl::StrCat("--node_id=", flags.node), place);
  }
  if (flags.restarts != 0 && !is_of_our_launcher) {
    return Contradiction(absl::StrCat("--restarts=", flags.restarts), place);
  }
  return absl::OkStatus();
}

absl::Status CheckRestarts(const LaunchFlags& flags, int64_t nodes, bool launches) {
  if (flags.restarts < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --restarts is ", flags.restarts, ", expected 0 or more"));
  }
  if (flags.restarts > 0 && nodes > 1) {
    return absl::InvalidArgumentError(absl::StrCat("command line: --restarts is ", flags.restarts,
                                                   ", expected 0, because config.DISTRIBUTED.", "NUM_NODES is ", nodes,
                                                   ": only torchrun starts the ranks of several hosts again"));
  }
  if (flags.restarts == 0 || launches) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("command line: --restarts=", flags.restarts,
                                                 " without ranks to start again, expected --launch=",
                                                 "local:N beside it; --launch=local:1 watches over one process"));
}

// Of one process: the others that were started so would each train a run of their own.
absl::Status CheckNode(int64_t node) {
  if (node <= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("command line: --node_id is ", node, ", expected 0, this host being the only one ",
                   "(config.DISTRIBUTED.NUM_NODES is 1); NUM_NODES, NUM_PROC_PER_NODE and RUN_ID=HOST:PORT of ",
                   "config.DISTRIBUTED make one run of the same command on several hosts"));
}

// As OpenMP reads it: a number, or one for each level of nested parallel regions.
absl::Status CheckThreads(const EnvironmentVariable& variable) {
  const std::string text = variable("OMP_NUM_THREADS").value_or("");
  if (text.empty()) return absl::OkStatus();
  for (const absl::string_view level : absl::StrSplit(text, ',')) {
    int64_t threads = 0;
    if (absl::SimpleAtoi(level, &threads) && threads >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("environment: OMP_NUM_THREADS is '", text, "', expected a number of threads, 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

WorldShape RunWorld::shape() const {
  if (place.size % place.local_size != 0) return {place.size, 1};
  return {place.size / place.local_size, place.local_size};
}

absl::StatusOr<RunWorld> FindRunWorld(const LaunchFlags& flags, const WorldOptions& options,
                                      const EnvironmentVariable& variable) {
  SSL_RETURN_IF_ERROR(CheckThreads(variable));
  SSL_ASSIGN_OR_RETURN(const int64_t launched, LaunchedRanks(flags));
  RunWorld world;
  NodeOptions node;
  node.nodes = launched > 0 ? 1 : options.nodes;
  node.ranks_per_node = launched > 0 ? launched : options.ranks_per_node;
  SSL_ASSIGN_OR_RETURN(world.place, FindWorldPlace(variable));
  if (IsOfEnvironment(world.place)) {
    SSL_RETURN_IF_ERROR(CheckFlagsOfRank(flags, launched, world.place, variable("SSL_LAUNCHER").has_value()));
    SSL_RETURN_IF_ERROR(CheckTasks(world.place, node, variable));
    return world;
  }
  if (flags.node >= 0) node.node = flags.node;
  node.init_method = options.init_method;
  node.run_id = options.run_id;
  world.launches = launched > 0 || node.nodes * node.ranks_per_node > 1;
  SSL_RETURN_IF_ERROR(CheckRestarts(flags, node.nodes, world.launches));
  if (!world.launches) {
    SSL_RETURN_IF_ERROR(CheckNode(flags.node));
    return world;
  }
  SSL_ASSIGN_OR_RETURN(world.place, PlaceFromOptions(node, variable));
  return world;
}

std::string Describe(const RunWorld& world) {
  const WorldPlace& place = world.place;
  if (world.launches) {
    return absl::StrCat("this command starts ", place.local_size, place.local_size == 1 ? " rank" : " ranks", ", ",
                        place.rank, " to ", place.rank + place.local_size - 1, " of ", place.size, "; they meet at ",
                        MeetingPlace(place));
  }
  if (place.size == 1) return IsOfEnvironment(place) ? absl::StrCat("rank 0 of 1 (", place.source, ")") : place.source;
  return absl::StrCat("rank ", place.rank, " of ", place.size, " (", place.source, "), ", place.local_rank, " of the ",
                      place.local_size, " on this host; ranks meet at ", MeetingPlace(place),
                      place.store_is_served ? ", which the launcher serves" : "");
}

std::string DescribeVirtualRanks(int64_t virtual_ranks, int64_t processes) {
  return absl::StrCat(virtual_ranks, virtual_ranks == 1 ? " virtual rank on " : " virtual ranks on ", processes,
                      processes == 1 ? " process" : " processes");
}

}  // namespace ssl
