// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/signals.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <system_error>
#include <utility>

#include "ssl/tools/crash_report.h"
#include "ssl/tools/exit_codes.h"

namespace ssl {
namespace {

// A signal handler can reach nothing but globals, and of these only what is lock-free.
std::atomic<StopToken*> signal_stop{nullptr};
// Of its own, because the token may be set by another rank or a hook: that makes no first signal a second one.
std::atomic<bool> was_signalled{false};
std::atomic<int> first_stop{0};  // the number of the signal
std::atomic<bool> others_wait{false};
std::atomic<bool> speaks{true};  // of several ranks the first
constexpr int kUndecided = -1;
std::atomic<int> decided_code{kUndecided};

constexpr int kStops[] = {SIGINT, SIGTERM, SIGUSR2, SIGXCPU, SIGHUP};

// The stack of a handler for a process whose own stack has overflowed.
constexpr size_t kHandlerStackBytes = size_t{64} << 10;
alignas(16) char handler_stack[kHandlerStackBytes];

void EndBy(int signal_number) {
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

[[noreturn]] void EndUnbegun() {
  constexpr char kText[] = "stopped before the first step\n";
  const ssize_t written = speaks.load() ? write(STDERR_FILENO, kText, sizeof(kText) - 1) : 0;
  static_cast<void>(written);  // nobody to tell
  _exit(kExitStopped);
}

extern "C" void RequestStop(int signal_number) {
  StopToken* stop = signal_stop.load();
  const int reason = signal_number == SIGINT ? kStopUser : kStopTerminate;
  if (const int code = decided_code.load(); code != kUndecided) {
    if (was_signalled.exchange(true)) _exit(code);
    if (stop != nullptr) stop->Request(reason);  // of a sweep no further run begins
    return;
  }
  if (stop == nullptr) EndUnbegun();
  if (RunIsBuilding() && (!others_wait.load() || was_signalled.load())) EndUnbegun();
  // The kernel repeats SIGXCPU every second from the limit on: that is no second wish.
  if (signal_number != SIGXCPU && was_signalled.exchange(true)) {
    WriteCrashReport("stopped by a second signal before the state was saved", signal_number);
    EndBy(signal_number);
    return;
  }
  int none = 0;
  first_stop.compare_exchange_strong(none, signal_number);
  stop->Request(reason);
}

// While nothing runs that could save, there is nothing to be saved.
extern "C" void RequestSnapshot(int) {
  StopToken* stop = signal_stop.load();
  if (stop != nullptr) stop->RequestSnapshot();
}

[[noreturn]] void EndWithoutMemory() {
  constexpr char kText[] =
      "out of memory: raise the limit of this process (ulimit -v, ulimit -u, or those of its container), or give it "
      "less to do\n";
  constexpr size_t kLength = sizeof(kText) - 1;
  const ssize_t written = write(STDERR_FILENO, kText, kLength);
  static_cast<void>(written);  // nobody to tell
  WriteMemoryReport("out of memory");
  _exit(kExitMemory);
}

// Libraries that find no memory may crash for it.
bool HasNoMemory() {
  constexpr size_t kLittle = size_t{64} << 20;
  void* const memory = mmap(nullptr, kLittle, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return true;
  munmap(memory, kLittle);
  return false;
}

extern "C" void ReportCrash(int signal_number) {
  const bool is_of_memory = signal_number == SIGSEGV || signal_number == SIGABRT;
  if (is_of_memory && HasNoMemory()) EndWithoutMemory();
  WriteCrashReport("ended by a fatal signal", signal_number);
  EndBy(signal_number);
}

// An exception that nobody caught. Its text is lost once SIGABRT arrives.
[[noreturn]] void ReportTerminate() {
  // What cannot be thrown again ends here once more.
  thread_local bool is_ending = false;
  if (std::exchange(is_ending, true)) std::abort();
  const std::exception_ptr exception = std::current_exception();
  if (exception != nullptr) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
      EndWithoutMemory();
    } catch (const std::system_error& error) {
      // Of a thread, of which a process, its user or its memory may have no more.
      if (error.code() == std::errc::resource_unavailable_try_again) EndWithoutMemory();
      WriteCrashReport(error.what(), SIGABRT);
    } catch (const std::exception& error) {
      WriteCrashReport(error.what(), SIGABRT);
    } catch (...) {
      WriteCrashReport("exception of an unknown type", SIGABRT);
    }
  }
  std::abort();
}

void Handle(int signal_number, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  // One after the other: the later of two that come at once would interrupt the handler of the first, and pass for it.
  for (const int number : kStops) sigaddset(&action.sa_mask, number);
  sigaction(signal_number, &action, nullptr);
}

bool IsDefault(int signal_number) {
  struct sigaction present = {};
  sigaction(signal_number, nullptr, &present);
  return (present.sa_flags & SA_SIGINFO) == 0 && present.sa_handler == SIG_DFL;
}

// What ends or saves a run, and may come at any moment.
sigset_t Requests() {
  sigset_t requests;
  sigemptyset(&requests);
  for (const int number : kStops) sigaddset(&requests, number);
  sigaddset(&requests, SIGUSR1);
  return requests;
}

void OpenStandardDescriptors() {
  // open gives the lowest free number, so this ends above the standard ones.
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace

void HoldSignals() {
  std::set_terminate(ReportTerminate);
  const sigset_t requests = Requests();
  sigprocmask(SIG_BLOCK, &requests, nullptr);
}

void PrepareProcess() {
  // As launchers set it; what the rank is otherwise is known later (run_world.h).
  const char* rank = std::getenv("RANK");
  speaks.store(rank == nullptr || std::strcmp(rank, "0") == 0);
  for (const int number : {SIGINT, SIGTERM, SIGUSR2, SIGXCPU}) Handle(number, RequestStop, SA_RESTART);
  Handle(SIGUSR1, RequestSnapshot, SA_RESTART);
  if (IsDefault(SIGHUP)) Handle(SIGHUP, RequestStop, SA_RESTART);
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  OpenStandardDescriptors();
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  sigaltstack(&stack, nullptr);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGALRM}) {
    if (IsDefault(number)) Handle(number, ReportCrash, SA_ONSTACK);
  }
  const sigset_t requests = Requests();
  pthread_sigmask(SIG_UNBLOCK, &requests, nullptr);
  std::set_terminate(ReportTerminate);  // a library, such as glog, may have set its own since HoldSignals
}

void StopOnSignals(StopToken* stop, bool has_peers) {
  others_wait.store(has_peers);
  first_stop.store(0);
  decided_code.store(kUndecided);
  signal_stop.store(stop);
}

std::string StopSignal() {
  const int number = first_stop.load();
  const char* name = number == 0 ? nullptr : sigabbrev_np(number);
  return name == nullptr ? "" : std::string("SIG") + name;
}

void KeepExitCode(int exit_code) {
  was_signalled.store(false);
  decided_code.store(exit_code);
}

}  // namespace ssl
