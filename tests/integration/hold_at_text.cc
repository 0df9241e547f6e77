// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program, it holds each process that has printed the text in HOLD_AT to stderr until the signal whose
// number is in HOLD_UNTIL has come to it, once: whoever has read the text finds the process there, however late.
#include <dlfcn.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using Write = size_t (*)(const void*, size_t, size_t, FILE*);

// A handler reaches nothing but globals.
sem_t has_come;
struct sigaction of_program = {};

// The program's own handler has its say first, and may end the process.
extern "C" void Come(int number) {
  if (of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN) of_program.sa_handler(number);
  sem_post(&has_come);
}

bool IsAwaited(std::string_view printed, FILE* stream) {
  if (stream != stderr) return false;
  const char* text = std::getenv("HOLD_AT");
  return text != nullptr && printed.find(text) != std::string_view::npos;
}

}  // namespace

// With which glog prints.
extern "C" size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  static const Write write = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "fwrite"));
  static std::atomic<bool> was_held{false};
  const bool holds = IsAwaited({static_cast<const char*>(data), size * count}, stream) && !was_held.exchange(true);
  if (!holds) return write(data, size, count, stream);

  // Before it is printed: the answer may come at once.
  const int number = std::atoi(std::getenv("HOLD_UNTIL"));
  sem_init(&has_come, /*pshared=*/0, /*value=*/0);
  sigaction(number, nullptr, &of_program);
  struct sigaction action = of_program;
  action.sa_handler = Come;
  sigaction(number, &action, nullptr);
  const size_t written = write(data, size, count, stream);
  while (sem_wait(&has_come) != 0 && errno == EINTR) {
  }
  sigaction(number, &of_program, nullptr);
  return written;
}
