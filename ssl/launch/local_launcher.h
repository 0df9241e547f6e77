// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of this host as processes of one command line, and ends when they have: what torchrun does, for
// programs without Python. Ranks find their place by torchrun's variables (rank_environment.h), which
// ssl/distributed/launch_environment.h reads.
//
//   LaunchOptions options;
//   options.command = {"/proc/self/exe", "--config=test/swav_tiny"};
//   options.first.size = options.first.local_size = 4;
//   SSL_ASSIGN_OR_RETURN(const LaunchOutcome outcome, LaunchLocalRanks(options));
//   return outcome.exit_code;
//
// - Output: whole lines, "[rank] " before each in a world of several; stdout and stderr stay apart.
// - Signals: SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU and SIGHUP go on to every rank (rank_group.h).
// - No rank outlives the launcher, whatever ends it: the kernel kills them with it (rank_process.h).
// - With ranks on this host alone they meet on the loopback interface, unless a port is given.
// - The port is free when it is chosen; a process that takes it before rank 0 does makes the start fail. When it is
//   found taken after a failure, all ranks are started again with another, at most 3 times, which counts as no restart.
#ifndef SSL_LAUNCH_LOCAL_LAUNCHER_H_
#define SSL_LAUNCH_LOCAL_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ssl/distributed/launch_environment.h"
#include "ssl/launch/rank_group.h"

namespace ssl {

// What ranks have saved.
struct SavedProgress {
  int64_t steps = 0;   // grows with each checkpoint
  std::string newest;  // which it is, for messages, such as "step 40"; "" when there is none yet
};

// Of the last start.
struct LaunchOutcome {
  // The first failure's, peer_code for a rank that hung; without one the largest of the ranks' codes: 0 when all
  // finished, stopped_code when one was stopped. 128 + N for signal N. A rank that blames another (peer_code) is no
  // failure where a rank was stopped by the user, by way of the launcher or by itself: it lost that one, which had
  // nothing to save yet.
  int exit_code = 0;
  std::optional<RankEnd> first_failure;  // of ranks with its mistake, or damaged file, the lowest
  std::vector<RankEnd> ends;             // of all ranks, in the order in which they were seen
  int64_t restarts = 0;
  // By a signal to the launcher, also one that came when the last rank had ended: then the code is what it was.
  bool user_stopped = false;
};

struct LaunchOptions {
  std::vector<std::string> command;  // the first is a path; $PATH is not searched
  // The file at that path, open: when another one is there at a later start, or none, as after a deployment, ranks are
  // this one all the same. Below 0: whatever is there.
  int program_fd = -1;
  // The place of this host's first rank: local_size ranks are started, from first.rank on. Port 0, for worlds that are
  // on this host as a whole, means a free one of the loopback interface, whatever the host. With a store_file nobody
  // needs one.
  WorldPlace first;
  // Rank 0 finds the port's listening socket, open, in SSL_LISTENING_SOCKET and takes it over: WorldPlace has it. With
  // a free port only, and in a world of several. Not for programs that bind the port themselves: it is taken.
  bool pass_listening_socket = false;
  absl::Duration grace = absl::Seconds(30);  // from a rank's failure until the others are killed
  // How often all ranks are started again after one failed; for worlds that are on this host as a whole.
  int64_t max_restarts = 0;
  // Called before each start. When this many tries in a row leave the steps as they are, there is no further one. Not
  // set: nothing is known to move.
  std::function<SavedProgress()> progress;
  int64_t max_tries_without_progress = 3;
  // Called before each restart: why all would fail again, whatever these ranks do; then there is none. "": nothing is
  // known. Not set: nothing is.
  std::function<std::string()> obstacle;
  // Whether the rank that ended says that it has waited in vain for the process `pid` of this host: then that one
  // hangs, and is killed at once. Not set: nobody knows, and such a rank has the grace.
  std::function<bool(const RankEnd& end, int64_t pid)> waited_in_vain;
  // Told of each rank that runs when any of them has printed something. Not set: nobody is told.
  std::function<void(int64_t rank, int64_t pid)> on_output;
  // Whether a stop was asked for before signals came to the launcher: then no rank is started. Not set: it was not.
  std::function<bool()> is_stopped_before;
  // Called when the ranks of a start have ended with a failure, before they start again. Not set: nobody is told.
  std::function<void(const LaunchOutcome& outcome)> on_failure;
  int output_fd = 1;  // where the ranks' stdout goes
  int error_fd = 2;   // and their stderr
  // Exit codes with a meaning, as ssl_main has them (docs/exit_codes.md).
  int stopped_code = 75;  // saved and stopped: no failure
  int mistake_code = 2;   // of the command line or the configuration: no restart mends it
  int damage_code = 4;    // damaged files: no restart mends it where `progress` has not moved since
  int peer_code = 7;      // fails because another rank did: never the first failure while there is another
};

// Returns when no rank runs. One call at a time in a process, from a thread that lives as long as it; other threads may
// run. Each restart is logged as a warning, with the failure before it. InvalidArgument for options that contradict
// each other; the errors of StartRank, which leave no rank running.
absl::StatusOr<LaunchOutcome> LaunchLocalRanks(const LaunchOptions& options);

}  // namespace ssl

#endif  // SSL_LAUNCH_LOCAL_LAUNCHER_H_
