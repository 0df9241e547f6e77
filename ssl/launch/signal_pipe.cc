// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/signal_pipe.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int kNoPipe = -1;

// A handler reaches nothing but globals.
std::atomic<int> pipe_of_handler{kNoPipe};

extern "C" void WriteNumber(int number) {
  const int saved_errno = errno;
  const char byte = static_cast<char>(number);
  // A pipe is full when nobody has looked for thousands of signals: one less makes no difference.
  const ssize_t written = write(pipe_of_handler.load(), &byte, 1);
  static_cast<void>(written);
  errno = saved_errno;
}

bool IsIgnored(int number) {
  struct sigaction present = {};
  sigaction(number, nullptr, &present);
  return (present.sa_flags & SA_SIGINFO) == 0 && present.sa_handler == SIG_IGN;
}

}  // namespace

bool IsStop(int number) { return number != SIGUSR1 && number != SIGCHLD; }

absl::StatusOr<std::unique_ptr<SignalPipe>> SignalPipe::Install() {
  SSL_ASSIGN_OR_RETURN(Pipe pipe, Pipe::Create());
  SetNonBlocking(pipe.read_fd());
  SetNonBlocking(pipe.write_fd());
  int expected = kNoPipe;
  if (!pipe_of_handler.compare_exchange_strong(expected, pipe.write_fd())) {
    return absl::FailedPreconditionError("ranks are being launched by this process already");
  }
  std::unique_ptr<SignalPipe> signals = absl::WrapUnique(new SignalPipe(std::move(pipe)));
  const bool hangup_is_ignored = IsIgnored(SIGHUP);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU, SIGCHLD}) {
    signals->Handle(number, WriteNumber);
  }
  if (!hangup_is_ignored) signals->Handle(SIGHUP, WriteNumber);
  signals->Handle(SIGPIPE, SIG_IGN);
  return signals;
}

void SignalPipe::Handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);  // one after the other, in the order in which they come
  sigaction(number, &action, &before_[number]);
}

SignalPipe::~SignalPipe() {
  PutBack();
  pipe_of_handler.store(kNoPipe);
}

void SignalPipe::PutBack() {
  for (const auto& [number, action] : before_) sigaction(number, &action, nullptr);
  before_.clear();
}

std::vector<int> SignalPipe::Take() {
  std::vector<int> numbers;
  char bytes[256];
  ssize_t count = 0;
  while ((count = read(pipe_.read_fd(), bytes, sizeof(bytes))) > 0) numbers.insert(numbers.end(), bytes, bytes + count);
  return numbers;
}

}  // namespace ssl
