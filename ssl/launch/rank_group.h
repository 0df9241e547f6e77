// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one start on this host, from their first process to their last: their lines go out whole, signals go to
// them, and when one fails the others are stopped. For one thread.
#ifndef SSL_LAUNCH_RANK_GROUP_H_
#define SSL_LAUNCH_RANK_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ssl/launch/line_output.h"
#include "ssl/launch/rank_process.h"
#include "ssl/launch/signal_pipe.h"

namespace ssl {

// How a rank ended.
struct RankEnd {
  int64_t rank = 0;
  int64_t pid = 0;
  int exit_code = 0;       // when signal is 0
  int signal = 0;          // that ended it; 0 when it exited
  bool was_asked = false;  // by a signal that the launcher had sent it
  bool did_hang = false;   // the launcher has killed it, because another rank had waited for it in vain
  bool was_told = false;   // the launcher had sent it a signal before it exited, whatever ended it

  // As a shell shows it: 128 + signal when a signal ended it.
  int code() const { return signal == 0 ? exit_code : 128 + signal; }
};

// Any end but an exit with 0 or `stopped_code`, or by a signal that the launcher had sent.
bool IsFailure(const RankEnd& end, int stopped_code);

// "rank 2 (pid 4711) was ended by SIGKILL", "rank 2 (pid 4711) did not answer the others, and was killed"
std::string DescribeEnd(const RankEnd& end);

// What a group needs of whoever starts it; all outlive it.
struct GroupContext {
  SignalPipe* signals;
  OutputStream* output;  // of the ranks' stdout; may be the same as `error`
  OutputStream* error;
  absl::Duration grace;  // from a rank's failure until those that are left are killed
  int stopped_code;      // an exit code that is no failure, beside 0
  // Whether the rank that ended has waited in vain for the process `pid` of this host; null when nobody knows.
  std::function<bool(const RankEnd& end, int64_t pid)> waited_in_vain;
  // Told of each rank that runs when any of them has printed something; null when nobody asks.
  std::function<void(int64_t rank, int64_t pid)> on_output;
};

class RankGroup {
 public:
  explicit RankGroup(const GroupContext& context) : context_(context) {}
  ~RankGroup();  // kills those that run
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // Each line of its output gets `prefix`, but for the standard output of rank 0, where results are. Signals that have
  // come since the last start go to the ranks that are there; after a stop no further one is started. Errors are those
  // of StartRank.
  absl::Status Start(int64_t rank, const std::string& prefix, const RankCommand& command);

  // Until all have ended and their last lines are out.
  // - A stop signal (SIGTERM, SIGINT, SIGUSR2, SIGXCPU, SIGHUP) and SIGUSR1 go on to every rank, each as often as it
  //   comes; SIGXCPU until they have been asked to stop. A rank that stands still (SIGSTOP) goes on behind a second
  //   stop signal, and where another rank has stopped; behind the second one all that are left after `grace` get
  //   SIGKILL.
  // - After the first failure the others get SIGTERM, unless a stop signal has gone to them before, and after `grace`
  //   SIGKILL. A user's first stop signal after that SIGTERM goes no further: it would be the ranks' second one, on
  //   which they end without saving.
  // - After the first rank that was stopped the others get SIGTERM in the same way: those that run stop at its step
  //   anyhow, and those that still wait for it to connect would wait in vain.
  // - A rank that another one has waited for in vain is killed at once: it would not hear a SIGTERM.
  // Internal when the system's poll fails.
  absl::Status Run();

  const std::vector<RankEnd>& ends() const { return ends_; }  // in the order in which they were seen
  bool user_stopped() const { return user_stops_ > 0; }

 private:
  struct Stream {
    Pipe pipe;
    LineSplitter lines;
    OutputStream* out;
  };
  struct Rank {
    int64_t rank;
    pid_t pid;
    Stream output;
    Stream error;
    std::set<int> sent;
    bool has_ended = false;
    bool hangs = false;
  };

  absl::Status Wait();
  void ReadFrom(Stream* stream);
  void ReadAll(Stream* stream);
  void OnSignal(int number);
  void SendAll(int number);
  void EndStopped();
  void Reap();
  void OnEnd(const RankEnd& end);
  void AskToStop();
  void KillThoseItWaitedFor(const RankEnd& end);
  absl::Status Flush();
  bool AnyRuns() const;
  std::vector<Stream*> OpenStreams();
  std::vector<OutputStream*> PendingOutputs() const;

  const GroupContext context_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<RankEnd> ends_;
  int64_t user_stops_ = 0;
  bool has_failed_ = false;
  bool asked_to_stop_ = false;  // the ranks, by the launcher
  absl::Time kill_at_ = absl::InfiniteFuture();
};

}  // namespace ssl

#endif  // SSL_LAUNCH_RANK_GROUP_H_
