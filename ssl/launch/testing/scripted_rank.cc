// SPDX-License-Identifier: Apache-2.0
//
// A rank for tests of launchers. Each argument is WHO:VERB=VALUE, done in their order by those it names: WHO is a rank
// or
// *, with @N only in the start that has been preceded by N restarts. It waits for events (signals, ends of a FIFO),
// never for time.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ssl {
namespace {

const std::map<std::string, int> kSignals = {{"TERM", SIGTERM}, {"INT", SIGINT},  {"USR1", SIGUSR1},
                                             {"USR2", SIGUSR2}, {"HUP", SIGHUP},  {"XCPU", SIGXCPU},
                                             {"KILL", SIGKILL}, {"SEGV", SIGSEGV}};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(none)" : value;
}

void WriteTo(int fd, const std::string& text) {
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(99);
}

void Print(const std::string& text) { WriteTo(STDOUT_FILENO, text + "\n"); }

sigset_t Set(const std::string& name) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kSignals.at(name));
  return set;
}

// From now on the signal waits to be awaited.
void Block(const std::string& name) {
  const sigset_t set = Set(name);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(kSignals.at(name), SIG_DFL);
}

void Await(const std::string& name) {
  const sigset_t set = Set(name);
  sigwaitinfo(&set, nullptr);
  Print(absl::StrCat("got ", name));
}

void PrintWhetherItWaits(const std::string& name) {
  sigset_t pending;
  sigpending(&pending);
  Print(absl::StrCat(name, sigismember(&pending, kSignals.at(name)) == 1 ? " waits" : " does not wait"));
}

// Lines in pieces that end anywhere.
void PrintLines(const std::string& count) {
  std::string text;
  for (int i = 0, lines = std::atoi(count.c_str()); i < lines; ++i) absl::StrAppend(&text, "line ", i, "\n");
  for (size_t at = 0, piece = 1; at < text.size(); at += piece, piece = 1 + (piece * 7) % 701) {
    WriteTo(STDOUT_FILENO, text.substr(at, piece));
  }
}

// Waits until the FIFO is opened for reading, tells of it by a byte, and stays its writer.
void HoldOpen(const std::string& fifo) { WriteTo(open(fifo.c_str(), O_WRONLY), "x"); }

// Waits until the FIFO is opened from its other end.
void Meet(const std::string& fifo, int flags) { close(open(fifo.c_str(), flags)); }

// Waits until no process has the FIFO open for writing any more.
void AwaitClosing(const std::string& fifo) {
  const int fd = open(fifo.c_str(), O_RDONLY);
  char byte = 0;
  while (read(fd, &byte, 1) > 0) {
  }
  close(fd);
}

// A process that nobody waits for, in this one's group; it holds the FIFO open.
void LeaveChild(const std::string& fifo) {
  HoldOpen(fifo);
  if (fork() != 0) return;
  for (;;) pause();
}

// A process outside of this one's group serves the port until the FIFO is opened for writing.
void TakePort(const std::string& fifo) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(std::atoi(Variable("MASTER_PORT").c_str())));
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(fd, 1) != 0) _exit(97);
  int left_group[2];
  if (pipe(left_group) != 0) _exit(96);
  if (fork() != 0) {
    char byte = 0;
    if (read(left_group[0], &byte, 1) != 1) _exit(95);
    return;
  }
  setsid();
  WriteTo(left_group[1], "x");
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) close(standard);
  Meet(fifo, O_RDONLY);
  _exit(0);
}

// What the inherited socket is: "at the master's port" when it is one that listens there.
void PrintListeningSocket(const std::string&) {
  const int fd = std::atoi(Variable("SSL_LISTENING_SOCKET").c_str());
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  int listens = 0;
  socklen_t size_of_listens = sizeof(listens);
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size_of_listens) != 0 || listens != 1) {
    return Print("listens nowhere");
  }
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const bool is_masters = absl::StrCat(ntohs(address.sin6_port)) == Variable("MASTER_PORT");
  Print(is_masters ? "listens at the master's port" : "listens at another port");
}

// Exits with 0 when an earlier process has come here, which it finds by a file.
void EndIfDone(const std::string& path) {
  if (open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600) < 0) std::exit(0);
}

void Do(const std::string& verb, const std::string& value) {
  static const std::map<std::string, void (*)(const std::string&)> kVerbs = {
      {"print", Print},
      {"piece", [](const std::string& text) { WriteTo(STDOUT_FILENO, text); }},
      {"error", [](const std::string& text) { WriteTo(STDERR_FILENO, text + "\n"); }},
      {"lines", PrintLines},
      {"variable", [](const std::string& name) { Print(absl::StrCat(name, "=", Variable(name.c_str()))); }},
      {"pid", [](const std::string&) { Print(absl::StrCat(getpid())); }},
      {"exit", [](const std::string& code) { std::exit(std::atoi(code.c_str())); }},
      {"raise", [](const std::string& name) { raise(kSignals.at(name)); }},
      {"to_launcher", [](const std::string& name) { kill(getppid(), kSignals.at(name)); }},
      {"early", [](const std::string&) {}},
      {"block", Block},
      {"await", Await},
      {"waits", PrintWhetherItWaits},
      {"read_input", [](const std::string&) { Print(absl::StrCat("input ended: ", std::getchar() == EOF)); }},
      {"hold", HoldOpen},
      {"open", [](const std::string& fifo) { Meet(fifo, O_WRONLY); }},
      {"opened", [](const std::string& fifo) { Meet(fifo, O_RDONLY); }},
      {"until_closed", AwaitClosing},
      {"leave_child", LeaveChild},
      {"take_port", TakePort},
      {"end_if_done", EndIfDone},
      {"socket", PrintListeningSocket},
      {"pause", [](const std::string&) { pause(); }},
  };
  kVerbs.at(verb)(value);
}

bool IsNamed(const std::string& who) {
  const std::pair<std::string, std::string> rank_and_start = absl::StrSplit(who, absl::MaxSplits('@', 1));
  const auto& [rank, start] = rank_and_start;
  return (rank == "*" || rank == Variable("RANK")) &&
         (start.empty() || start == Variable("TORCHELASTIC_RESTART_COUNT"));
}

// As a program does once it handles them; a rank with `early` among its verbs does not get so far.
void Unblock(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (absl::StrContains(argv[i], ":early=")) return;
  }
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : {SIGTERM, SIGINT, SIGUSR2, SIGXCPU, SIGHUP}) sigaddset(&stops, number);
  sigprocmask(SIG_UNBLOCK, &stops, nullptr);
}

void Run(const std::string& argument) {
  const std::pair<std::string, std::string> who_and_what = absl::StrSplit(argument, absl::MaxSplits(':', 1));
  const std::pair<std::string, std::string> verb_and_value =
      absl::StrSplit(who_and_what.second, absl::MaxSplits('=', 1));
  if (IsNamed(who_and_what.first)) Do(verb_and_value.first, verb_and_value.second);
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  ssl::Unblock(argc, argv);
  for (int i = 1; i < argc; ++i) ssl::Run(argv[i]);
  return 0;
}
