// SPDX-License-Identifier: Apache-2.0
//
// One process of a launcher: started, signalled, waited for.
#ifndef SSL_LAUNCH_RANK_PROCESS_H_
#define SSL_LAUNCH_RANK_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/launch/pipe.h"

namespace ssl {

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;  // when signal is 0
  int signal = 0;     // that ended it; 0 when it exited
};

struct RankCommand {
  std::vector<std::string> arguments;    // the first is a path: $PATH is not searched
  std::vector<std::string> environment;  // "NAME=VALUE"
  int program_fd = -1;                   // an open file of the launcher's to run in place of the path; below 0 for none
  int inherited_fd = -1;                 // an open file of the launcher's that the rank gets under the same number
};

struct RankProcess {
  pid_t pid = 0;
  Pipe output;  // its stdout and stderr: read ends, which do not wait
  Pipe error;
};

// Starts a program, with nothing of the launcher's open files but inherited_fd: stdin is empty.
// - The kernel ends it by SIGKILL when the launcher's thread that called this ends, however that happens. Processes
// that
//   it starts itself are its own business then.
// - It leads a process group of its own: Ctrl-C reaches the launcher alone, which passes it on.
// - SIGUSR1 is ignored until the program handles it: a request to save that comes while it still loads ends nothing.
//   SIGTERM, SIGINT, SIGUSR2, SIGXCPU and SIGHUP are blocked: one that comes so early waits until the program, which
//   has to unblock them, can say that it was stopped. The mask of other signals is the caller's.
// Returns when the program runs. NotFound or PermissionDenied with its path when it cannot; ResourceExhausted when the
// system has no room for a process. Descriptors 0 to 2 of the caller have to be open.
absl::StatusOr<RankProcess> StartRank(const RankCommand& command);

// To the process and those that it started (its process group).
void SignalRank(pid_t pid, int number);

// How it ended; nothing while it runs. Once it has ended, what is left of its process group is ended by SIGKILL, and
// the pid is no longer this process's.
std::optional<ProcessEnd> TakeEnd(pid_t pid);

// Whether it is past its exit, though its end may not be there to take yet: it has its exit code, and no signal reaches
// it any more. True before its exit closes the first of its open files.
bool IsExiting(pid_t pid);

// SIGKILL, and waits for the end.
void KillRank(pid_t pid);

}  // namespace ssl

#endif  // SSL_LAUNCH_RANK_PROCESS_H_
