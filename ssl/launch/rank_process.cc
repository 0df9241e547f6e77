// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int kNotStarted = 127;

// All that the new process needs, made before the fork: after it, in a process that may have had threads, nothing may
// allocate or lock.
struct Birth {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  pid_t launcher;
  sigset_t mask;
  int output;
  int error;
  int program;
  int inherited;
  int report;  // takes errno when the program does not start; closed by its start
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));  // exec does not write
  pointers.push_back(nullptr);
  return pointers;
}

constexpr int kStops[] = {SIGTERM, SIGINT, SIGUSR2, SIGXCPU, SIGHUP};

// What was sent to the launcher's group between the fork and setpgid is the launcher's to pass on: ignoring a signal
// forgets those that wait. One that was ignored before (SIGHUP under nohup) stays so.
void ForgetSignals() {
  for (const int number : kStops) {
    if (signal(number, SIG_IGN) != SIG_IGN) signal(number, SIG_DFL);
  }
  signal(SIGPIPE, SIG_DFL);
  signal(SIGUSR1, SIG_IGN);
}

void ArrangeDescriptors(const Birth& birth) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(birth.output, STDOUT_FILENO);
  dup2(birth.error, STDERR_FILENO);
  if (birth.inherited >= 0) fcntl(birth.inherited, F_SETFD, 0);  // open beyond exec
}

[[noreturn]] void BecomeRank(const Birth& birth) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != birth.launcher) _exit(kNotStarted);  // it ended before prctl, which tells of later ends only
  ArrangeDescriptors(birth);
  ForgetSignals();
  // A program that loads for a second would be ended by a stop as if it had crashed.
  sigset_t mask = birth.mask;
  for (const int number : kStops) sigaddset(&mask, number);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (birth.program >= 0) {
    execveat(birth.program, "", birth.arguments.data(), birth.environment.data(), AT_EMPTY_PATH);
  } else {
    execve(birth.arguments[0], birth.arguments.data(), birth.environment.data());
  }
  const int error = errno;
  const ssize_t written = write(birth.report, &error, sizeof(error));
  static_cast<void>(written);
  _exit(kNotStarted);
}

// With all signals blocked, so that no handler of the launcher runs in the child.
pid_t ForkRank(Birth* birth) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &birth->mask);
  const pid_t pid = fork();
  if (pid == 0) BecomeRank(*birth);
  const int saved_errno = errno;
  pthread_sigmask(SIG_SETMASK, &birth->mask, nullptr);
  errno = saved_errno;
  return pid;
}

// errno of the start, 0 when the program runs.
int ReadReport(int fd) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(fd, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  return count == sizeof(error) ? error : 0;
}

absl::Status StartError(const std::string& program, int error) {
  const std::string text = absl::StrCat("starting ", program, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES || error == ENOEXEC) return absl::PermissionDeniedError(text);
  return absl::ResourceExhaustedError(text);
}

siginfo_t WaitFor(pid_t pid, int options) {
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | options) != 0 && errno == EINTR) {
  }
  return info;
}

}  // namespace

absl::StatusOr<RankProcess> StartRank(const RankCommand& command) {
  SSL_RET_CHECK(!command.arguments.empty(), "a command has a program");
  const std::string& program = command.arguments[0];
  SSL_ASSIGN_OR_RETURN(Pipe output, Pipe::Create());
  SSL_ASSIGN_OR_RETURN(Pipe error, Pipe::Create());
  SSL_ASSIGN_OR_RETURN(Pipe report, Pipe::Create());
  Birth birth = {Pointers(command.arguments),
                 Pointers(command.environment),
                 getpid(),
                 {},
                 output.write_fd(),
                 error.write_fd(),
                 command.program_fd,
                 command.inherited_fd,
                 report.write_fd()};
  const pid_t pid = ForkRank(&birth);
  if (pid < 0) return StartError(program, errno);
  report.CloseWrite();
  if (const int reported = ReadReport(report.read_fd()); reported != 0) {
    WaitFor(pid, 0);
    return StartError(program, reported);
  }
  for (Pipe* pipe : {&output, &error}) {
    pipe->CloseWrite();
    SetNonBlocking(pipe->read_fd());
  }
  return RankProcess{pid, std::move(output), std::move(error)};
}

void SignalRank(pid_t pid, int number) { kill(-pid, number); }

std::optional<ProcessEnd> TakeEnd(pid_t pid) {
  // It stays a zombie while its group is ended, so that the group's number cannot be another's yet.
  if (WaitFor(pid, WNOHANG | WNOWAIT).si_pid == 0) return std::nullopt;
  SignalRank(pid, SIGKILL);
  const siginfo_t info = WaitFor(pid, 0);
  if (info.si_code == CLD_EXITED) return ProcessEnd{info.si_status, 0};
  return ProcessEnd{0, info.si_status};
}

bool IsExiting(pid_t pid) {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING of the kernel's linux/sched.h, which no header for programs has
  constexpr size_t kFlags = 6;        // state, parent, group, session, terminal, foreground group, flags
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(") ");  // the name before it may hold anything
  if (name_end == std::string::npos) return false;
  const std::vector<absl::string_view> fields = absl::StrSplit(absl::string_view(text).substr(name_end + 2), ' ');
  uint64_t flags = 0;
  return fields.size() > kFlags && absl::SimpleAtoi(fields[kFlags], &flags) && (flags & kExiting) != 0;
}

void KillRank(pid_t pid) {
  SignalRank(pid, SIGKILL);
  WaitFor(pid, 0);
}

}  // namespace ssl
