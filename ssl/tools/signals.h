// SPDX-License-Identifier: Apache-2.0
//
// What the process does with signals: stops in order, leaves a report, or goes on.
//
//   int main(...) {
//     PrepareProcess();              // first of all: a signal before it kills, or waits where HoldSignals was called
//     ...
//     StopOnSignals(&stop);          // as soon as there may be something to save
#ifndef SSL_TOOLS_SIGNALS_H_
#define SSL_TOOLS_SIGNALS_H_

#include <string>

#include "ssl/base/stop_token.h"

namespace ssl {

// Lets the stop signals and SIGUSR1 wait for PrepareProcess. For an executable's DT_PREINIT_ARRAY, which runs before
// the initialisers of its libraries: it calls nothing but the system, and std::set_terminate, which only keeps a
// pointer. What was ignored is ignored still once it is delivered.
void HoldSignals();

// - SIGINT, SIGTERM, SIGUSR2, SIGXCPU and SIGHUP (unless it was ignored at the start, as under nohup) end the
//   process with kExitStopped at once: before StopOnSignals there is nothing to save. They are unblocked, as
//   is SIGUSR1: HoldSignals, or a launcher that starts this process, blocks them until here.
//   Ranks other than 0 (RANK) say nothing of it.
// - SIGUSR1 does nothing yet, for the same reason.
// - SIGPIPE and SIGXFSZ are ignored: a reader that closes stdout, or a limit of file sizes, is an error of the write
//   and does not end a training.
// - SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT and SIGALRM leave a crash report (crash_report.h) and then do
// what
//   they do. Handlers that stand already, such as a sanitizer's, are left alone.
// - Exhausted memory ends the process with kExitMemory where nobody catches it, in an initialiser of a library, too:
//   an exception, or a crash (SIGSEGV, SIGABRT) without 64 MiB that are left.
// - Descriptors 0 to 2 that are closed lead to /dev/null: else the next file to be opened would get the number, and
//   with it what is printed.
void PrepareProcess();

// From now on the first of the stop signals requests a stop: the run saves after the step in progress. While a run is
// still being built, or an evaluation opens its data, which may take long (a scan of a huge folder), it ends the
// process as before; where others wait for it (has_peers) it is a request then, too, on which all agree before the
// first step, and the second one ends the process as before. Once the run has begun, the next one leaves a crash report
// and ends the process at once, whatever else requested a stop in the meantime; SIGXCPU, which the kernel repeats every
// second, counts as neither. SIGUSR1 asks for a checkpoint, however often: the run saves after the step in progress,
// and goes on; what does not train, such as an evaluation, ignores it. `stop` outlives the process's last signal. Each
// run of a sweep in one process begins with it, and ends what KeepExitCode has said of the run before.
void StopOnSignals(StopToken* stop, bool has_peers);

// "SIGTERM": the first stop signal since StopOnSignals; "" when none came, as where a hook or another rank asked.
std::string StopSignal();

// The process will end with `exit_code`, because it has failed, is stopped and has saved, or is done: the first stop
// signal from now on requests a stop, which keeps a sweep from its next run and changes nothing else, and a second one
// ends the process at once, with that code.
void KeepExitCode(int exit_code);

}  // namespace ssl

#endif  // SSL_TOOLS_SIGNALS_H_
