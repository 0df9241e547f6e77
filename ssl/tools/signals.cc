// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/signals.h"

#include <csignal>
#include <initializer_list>

namespace ssl {
namespace {

// A signal handler can reach nothing but a global. It is written once, before the handlers are installed.
StopToken* signal_stop = nullptr;

extern "C" void RequestStop(int signal_number) {
  if (signal_stop->requested()) {
    std::signal(signal_number, SIG_DFL);
    std::raise(signal_number);
    return;
  }
  signal_stop->Request(signal_number == SIGINT ? kStopUser : kStopTerminate);
}

}  // namespace

void StopOnSignals(StopToken* stop) {
  signal_stop = stop;
  for (const int signal_number : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction action = {};
    action.sa_handler = RequestStop;
    action.sa_flags = SA_RESTART;
    sigaction(signal_number, &action, nullptr);
  }
}

}  // namespace ssl
