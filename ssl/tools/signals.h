// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and schedulers' signals ask the run to stop in order.
#ifndef SSL_TOOLS_SIGNALS_H_
#define SSL_TOOLS_SIGNALS_H_

#include "ssl/base/stop_token.h"

namespace ssl {

// The first SIGINT, SIGTERM or SIGUSR1 requests a stop: the run saves after the step in progress. The next one ends
// the process at once. `stop` outlives the process's last signal.
void StopOnSignals(StopToken* stop);

}  // namespace ssl

#endif  // SSL_TOOLS_SIGNALS_H_
