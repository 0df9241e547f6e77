// SPDX-License-Identifier: Apache-2.0
//
// Several runs from one command line with choices (`config.SEED_VALUE=0,1`): one after another, in this process or as
// ranks that it starts, each in a directory of its own, sweep_0, sweep_1, ... below config.CHECKPOINT.DIR. A run that
// fails does not stop the rest; one whose configuration is wrong is found before the first begins. The same command
// goes on where a stopped sweep stands; one with other choices is refused where the directories are another sweep's
// (sweep_identity.h).
#ifndef SSL_TOOLS_SWEEP_RUNNER_H_
#define SSL_TOOLS_SWEEP_RUNNER_H_

#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/sweep.h"
#include "ssl/core/registries.h"
#include "ssl/tools/command.h"

namespace ssl {

// Runs all of `runs`, whose tokens replace those of `line`, and prints a table at the end. Returns the exit code:
// 0 when every run finished, 75 when the user stopped the sweep (by a signal to this process, or to the launcher of a
// run's ranks), else that of the first run that did not finish. InvalidArgument, before anything runs, names every run
// whose configuration is wrong, and every directory that another sweep or run made; or that this host has no room for
// the ranks, that this process is one of several, or would start only some of them.
absl::StatusOr<int> RunSweep(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
                             StopToken& stop, std::ostream& out);

// --check_config for each of `runs`, with the ranks that `line` and the environment ask for, of which none is started
// or connected, and for several as a sweep: prints what is wrong with them, or, where each would run and the sweep is
// refused, that alone. Returns the exit code: 0 when all would run
// here, 2 when one has mistakes, else 3.
int CheckRuns(const CommandLine& line, const std::vector<SweepRun>& runs, const Registries& registries,
              std::ostream& out);

}  // namespace ssl

#endif  // SSL_TOOLS_SWEEP_RUNNER_H_
