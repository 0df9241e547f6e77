// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program, it sends the process the signal whose number is in SIGNAL_AT_LOAD while the program's
// libraries are initialised, long before main.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace {

__attribute__((constructor)) void Send() {
  const char* number = std::getenv("SIGNAL_AT_LOAD");
  if (number != nullptr) kill(getpid(), std::atoi(number));
}

}  // namespace
