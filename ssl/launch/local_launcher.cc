// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/local_launcher.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/launch/listening_socket.h"
#include "ssl/launch/rank_environment.h"
#include "ssl/launch/signal_pipe.h"

namespace ssl {
namespace {

constexpr int64_t kMostPorts = 3;  // tried in a row

std::vector<std::string> InheritedEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// Cores that this process may use.
int64_t Cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN);  // more cores than the set has room for
}

bool AreTheSameFile(int one, int other) {
  struct stat of_one = {};
  struct stat of_other = {};
  if (fstat(one, &of_one) != 0 || fstat(other, &of_other) != 0) return false;
  return of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
}

// Whether another file is at `path` than the one that is open, or none.
bool LeadsElsewhere(const std::string& path, int fd) {
  struct stat there = {};
  struct stat of_fd = {};
  if (fstat(fd, &of_fd) != 0) return false;
  return stat(path.c_str(), &there) != 0 || there.st_dev != of_fd.st_dev || there.st_ino != of_fd.st_ino;
}

absl::Status CheckOptions(const LaunchOptions& options) {
  const WorldPlace& first = options.first;
  if (options.command.empty()) return absl::InvalidArgumentError("launching ranks: no command, expected a path");
  if (first.local_size < 1 || first.rank < 0 || first.rank + first.local_size > first.size) {
    return absl::InvalidArgumentError(absl::StrCat("launching ranks: ", first.local_size, " from rank ", first.rank,
                                                   " on, expected ranks below the world's size, ", first.size));
  }
  if (options.output_fd < 0 || options.error_fd < 0) {
    return absl::InvalidArgumentError("launching ranks: no open file for their output, expected descriptors");
  }
  if (options.pass_listening_socket && first.port != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("launching ranks: port ", first.port, " is given, expected 0 to pass its listening socket on"));
  }
  if (first.local_size == first.size) return absl::OkStatus();
  if (first.port == 0 && first.store_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("launching ranks: no port, though only ", first.local_size, " of ",
                                                   first.size, " ranks are on this host, expected the same on all"));
  }
  if (options.max_restarts == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("launching ranks: ", options.max_restarts,
                                                 " restarts, expected 0 for ranks on several hosts: only torchrun "
                                                 "starts all of them again"));
}

// The same mistake, or the same damaged file, the lowest rank tells for all that exit for it. These two follow from no
// other rank's failure.
RankEnd LowestLike(const RankEnd& first, const std::vector<RankEnd>& ends, const LaunchOptions& options) {
  RankEnd lowest = first;
  if (first.code() != options.mistake_code && first.code() != options.damage_code) return first;
  for (const RankEnd& end : ends) {
    if (end.code() == first.code() && end.rank < lowest.rank) lowest = end;
  }
  return lowest;
}

// The end of a rank closes its connections before it can be seen to have ended, so a rank that complains about it may
// be seen first.
std::optional<RankEnd> FirstFailure(const std::vector<RankEnd>& ends, const LaunchOptions& options) {
  std::optional<RankEnd> of_a_peer;
  for (const RankEnd& end : ends) {
    if (!IsFailure(end, options.stopped_code)) continue;
    if (end.code() != options.peer_code) return LowestLike(end, ends, options);
    if (!of_a_peer.has_value()) of_a_peer = end;
  }
  return of_a_peer;
}

int CodeOf(const RankEnd& failure, const LaunchOptions& options) {
  return failure.did_hang ? options.peer_code : failure.code();
}

// A signal that nobody but the launcher wished for is its answer to the stop of a rank.
int CommonCode(const LaunchOutcome& outcome, const LaunchOptions& options) {
  int code = 0;
  for (const RankEnd& end : outcome.ends) {
    const bool follows_a_stop = end.was_asked && !outcome.user_stopped;
    code = std::max(code, follows_a_stop ? options.stopped_code : end.code());
  }
  return code;
}

LaunchOutcome StoppedBefore(const LaunchOptions& options) {
  LaunchOutcome outcome;
  outcome.exit_code = options.stopped_code;
  outcome.user_stopped = true;
  return outcome;
}

class Launcher {
 public:
  Launcher(const LaunchOptions& options, SignalPipe* signals)
      : options_(options),
        output_(options.output_fd),
        error_(options.error_fd),
        // Two streams of one file would cut into each other's lines.
        is_one_file_(AreTheSameFile(options.output_fd, options.error_fd)),
        context_{signals,
                 &output_,
                 is_one_file_ ? &output_ : &error_,
                 options.grace,
                 options.stopped_code,
                 options.waited_in_vain,
                 options.on_output},
        saved_steps_(Progress().steps) {}

  absl::StatusOr<LaunchOutcome> Run() {
    for (;;) {
      RankGroup group(context_);
      SSL_ASSIGN_OR_RETURN(const int port, Start(&group));
      SSL_RETURN_IF_ERROR(group.Run());
      LaunchOutcome outcome = OutcomeOf(group);
      if (!outcome.first_failure.has_value()) return outcome;
      if (options_.on_failure != nullptr) options_.on_failure(outcome);
      if (outcome.user_stopped) return outcome;
      if (!PortWasTaken(port) && !MayRestart(*outcome.first_failure)) return outcome;
    }
  }

 private:
  SavedProgress Progress() const { return options_.progress == nullptr ? SavedProgress() : options_.progress(); }

  // The port at which they meet.
  absl::StatusOr<int> Start(RankGroup* group) const {
    WorldPlace first = options_.first;
    first.restart_count += restarts_;
    if (first.port != 0 || !first.store_file.empty()) {
      SSL_RETURN_IF_ERROR(StartRanks(first, group));
      return first.port;
    }
    SSL_ASSIGN_OR_RETURN(const ListeningSocket server, OpenServer());
    first.host = ListeningSocket::kHost;
    first.port = server.port();
    first.listening_socket = server.fd();
    SSL_RETURN_IF_ERROR(StartRanks(first, group));
    return first.port;  // and the launcher's hold of the socket ends: it is rank 0's alone
  }

  // With a closed socket when no rank takes it over: the port was free, and is.
  absl::StatusOr<ListeningSocket> OpenServer() const {
    SSL_ASSIGN_OR_RETURN(ListeningSocket server, ListeningSocket::Open(0));
    // Of one rank nobody asks anything: it would keep the port open and never look at it.
    if (!options_.pass_listening_socket || options_.first.size == 1) server.Close();
    return server;
  }

  // Below 0 for the path. By an open file a process has no name of its own in listings, so only where it has to be.
  int ProgramToRun() const {
    if (options_.program_fd < 0 || !LeadsElsewhere(options_.command[0], options_.program_fd)) return -1;
    SSL_LOG(WARNING) << options_.command[0] << " is not the program any more that was started: it was replaced or "
                     << "removed; the ranks run the one that was started";
    return options_.program_fd;
  }

  absl::Status StartRanks(const WorldPlace& first, RankGroup* group) const {
    const std::vector<std::string> inherited = InheritedEnvironment();
    const int program = ProgramToRun();
    for (int64_t i = 0; i < first.local_size; ++i) {
      const int64_t rank = first.rank + i;
      SSL_RETURN_IF_ERROR(
          group->Start(rank, first.size == 1 ? "" : absl::StrCat("[", rank, "] "),
                       {options_.command, RankEnvironment(inherited, first, i, options_.max_restarts, Cores()), program,
                        rank == 0 ? first.listening_socket : -1}));
    }
    return absl::OkStatus();
  }

  LaunchOutcome OutcomeOf(const RankGroup& group) const {
    LaunchOutcome outcome;
    outcome.ends = group.ends();
    outcome.restarts = restarts_;
    outcome.first_failure = FirstFailure(outcome.ends, options_);
    outcome.user_stopped = group.user_stopped();
    if (WasOnlyLeft(outcome)) outcome.first_failure.reset();
    outcome.exit_code =
        outcome.first_failure.has_value() ? CodeOf(*outcome.first_failure, options_) : CommonCode(outcome, options_);
    // A stop came before all were started.
    const bool are_all_there = static_cast<int64_t>(outcome.ends.size()) == options_.first.local_size;
    if (!are_all_there) {
      SSL_LOG(INFO) << "stopped before the first step, with " << outcome.ends.size() << " of "
                    << options_.first.local_size << " ranks started";
      outcome.exit_code = std::max(outcome.exit_code, options_.stopped_code);
    }
    return outcome;
  }

  // A stop that reaches one rank while the ranks connect ends it at once; the others are in an operation with it. One
  // that the launcher has stopped because of the failure explains nothing.
  bool WasOnlyLeft(const LaunchOutcome& outcome) const {
    const auto was_stopped = [this, &outcome](const RankEnd& end) {
      if (end.code() == options_.stopped_code) return outcome.user_stopped || !end.was_told;
      return outcome.user_stopped && end.was_asked;
    };
    return outcome.first_failure.has_value() && outcome.first_failure->code() == options_.peer_code &&
           std::any_of(outcome.ends.begin(), outcome.ends.end(), was_stopped);
  }

  // Our ranks are gone, so a port that is served belongs to somebody else.
  bool PortWasTaken(int port) {
    const bool is_given = options_.first.port != 0 || !options_.first.store_file.empty();
    if (is_given || options_.pass_listening_socket) return false;
    if (++ports_ >= kMostPorts || ListeningSocket::Open(port).ok()) return false;
    SSL_LOG(WARNING) << "port " << port << ", which was free, is another process's now; starting all ranks "
                     << "again with another port";
    return true;
  }

  bool MayRestart(const RankEnd& failure) {
    if (options_.max_restarts == 0 || failure.code() == options_.mistake_code) return false;
    ports_ = 0;
    const SavedProgress saved = Progress();
    tries_without_progress_ = saved.steps > saved_steps_ ? 0 : tries_without_progress_ + 1;
    saved_steps_ = saved.steps;
    const bool has_newest = !saved.newest.empty();
    const std::string what = absl::StrCat(
        DescribeEnd(failure), "; ",
        has_newest ? absl::StrCat("the newest checkpoint is of ", saved.newest) : "there is no checkpoint yet");
    const std::string obstacle = options_.obstacle == nullptr ? "" : options_.obstacle();
    if (!obstacle.empty()) {
      SSL_LOG(WARNING) << DescribeEnd(failure) << "; no restart: " << obstacle;
      return false;
    }
    const bool nothing_moved = options_.progress != nullptr && tries_without_progress_ > 0;
    if (failure.code() == options_.damage_code && nothing_moved) {
      SSL_LOG(WARNING) << what << "; no restart: damaged files, and nothing was saved since the start";
      return false;
    }
    if (tries_without_progress_ >= options_.max_tries_without_progress) {
      SSL_LOG(WARNING) << what << "; no restart after " << tries_without_progress_ << " tries that "
                       << (has_newest ? "left it there" : "saved none");
      return false;
    }
    if (restarts_ == options_.max_restarts) {
      SSL_LOG(WARNING) << what << "; no restart after " << restarts_ << ", the most that were allowed";
      return false;
    }
    ++restarts_;
    SSL_LOG(WARNING) << what << "; restart " << restarts_ << " of at most " << options_.max_restarts
                     << (has_newest ? "" : ", which starts anew");
    return true;
  }

  const LaunchOptions& options_;
  OutputStream output_;
  OutputStream error_;
  const bool is_one_file_;
  const GroupContext context_;
  int64_t restarts_ = 0;
  int64_t ports_ = 0;
  int64_t saved_steps_;
  int64_t tries_without_progress_ = 0;
};

}  // namespace

absl::StatusOr<LaunchOutcome> LaunchLocalRanks(const LaunchOptions& options) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
  if (options.is_stopped_before != nullptr && options.is_stopped_before()) return StoppedBefore(options);
  SSL_ASSIGN_OR_RETURN(LaunchOutcome outcome, Launcher(options, signals.get()).Run());
  // Nobody has looked since the last rank was seen to end. What comes from here on is the caller's to hear.
  signals->PutBack();
  const std::vector<int> late = signals->Take();
  outcome.user_stopped = outcome.user_stopped || std::any_of(late.begin(), late.end(), IsStop);
  return outcome;
}

}  // namespace ssl
