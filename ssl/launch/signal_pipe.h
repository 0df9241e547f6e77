// SPDX-License-Identifier: Apache-2.0
//
// Signals as bytes of a pipe, which poll can wait for together with everything else. One at a time in a process,
// because handlers of signals belong to the whole process; it may have threads.
//
//   SSL_ASSIGN_OR_RETURN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
//   poll(...signals->fd()...);
//   for (const int number : signals->Take()) ...
#ifndef SSL_LAUNCH_SIGNAL_PIPE_H_
#define SSL_LAUNCH_SIGNAL_PIPE_H_

#include <csignal>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/launch/pipe.h"

namespace ssl {

// Whether a signal that Take tells of asks for an end: any but SIGUSR1 and SIGCHLD.
bool IsStop(int number);

class SignalPipe {
 public:
  // Takes SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU and SIGCHLD, and SIGHUP unless it is ignored (nohup); ignores
  // SIGPIPE. The destructor does as PutBack does.
  static absl::StatusOr<std::unique_ptr<SignalPipe>> Install();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int fd() const { return pipe_.read_fd(); }
  // Those that came since the last call, in their order; never waits.
  std::vector<int> Take();

  // Puts back what stood before: from now on signals go there, and Take tells those that came until now.
  void PutBack();

 private:
  explicit SignalPipe(Pipe pipe) : pipe_(std::move(pipe)) {}
  void Handle(int number, void (*handler)(int));

  Pipe pipe_;
  std::map<int, struct sigaction> before_;
};

}  // namespace ssl

#endif  // SSL_LAUNCH_SIGNAL_PIPE_H_
