// SPDX-License-Identifier: Apache-2.0
//
// Ports of this host for rank 0 to serve the store at. Stateless; thread-safe.
#ifndef SSL_LAUNCH_FREE_PORT_H_
#define SSL_LAUNCH_FREE_PORT_H_

#include "absl/status/statusor.h"

namespace ssl {

// A TCP port that nobody serves, on any address of this host: the system chooses one when port 0 is bound. It is free
// again when this returns, so another process may take it before rank 0 does; the launcher sees that afterwards
// (PortIsFree) and tries another.
absl::StatusOr<int> FreePort();

// Whether a server could be bound to it now.
bool PortIsFree(int port);

}  // namespace ssl

#endif  // SSL_LAUNCH_FREE_PORT_H_
