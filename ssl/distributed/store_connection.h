// SPDX-License-Identifier: Apache-2.0
//
// The store of c10d at which ranks meet, connected or served, with errors that say what happened and the way out.
#ifndef SSL_DISTRIBUTED_STORE_CONNECTION_H_
#define SSL_DISTRIBUTED_STORE_CONNECTION_H_

#include <c10/util/intrusive_ptr.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ssl/distributed/rendezvous_options.h"
#include "ssl/distributed/waiting_log.h"

namespace c10d {
class Store;
}

namespace ssl {

// Whether this rank holds the store.
bool Serves(const RendezvousOptions& options);

// Who does: "rank 0", "the launcher's store".
std::string StoreHolder(const RendezvousOptions& options);

// "gpu1:29500", or the file.
std::string MeetingPlaceOf(const RendezvousOptions& options);

// The other ranks are why it failed (kCausePeer).
absl::Status WithPeerAsCause(absl::Status status);

// InvalidArgument, as CheckStoreFile for a file.
absl::Status CheckRendezvous(const RendezvousOptions& options);

// Of options that are right; what waits is told to `waiting`. AlreadyExists when the port is taken; InvalidArgument for
// rank 0 where the name of its own machine leads nowhere, or elsewhere; with kCausePeer Unavailable when nobody
// listens.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> ConnectToStore(const RendezvousOptions& options, absl::Time deadline,
                                                               WaitingLog* waiting);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_STORE_CONNECTION_H_
