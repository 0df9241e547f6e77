// SPDX-License-Identifier: Apache-2.0
//
// Where the processes of a run meet before they are connected, and where they tell each other afterwards what failed: a
// key-value store of c10d, served by rank 0 or kept in a file.
//
// Every rank opens one; Open returns once all have come, or with one error for all. Ranks that were started for worlds
// of different sizes, and two processes that were started as one rank, are refused here, before anything waits for
// them.
#ifndef SSL_DISTRIBUTED_RENDEZVOUS_H_
#define SSL_DISTRIBUTED_RENDEZVOUS_H_

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ssl/distributed/hearing.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/distributed/rendezvous_options.h"

namespace c10d {
class Store;
}

namespace ssl {

// Used by one thread at a time.
class Rendezvous {
 public:
  // Collective. A rank that meets a start in which it was another process already, one that is not known to run (a
  // rank that was started again while the others still end), waits for the next start.
  // Errors: InvalidArgument (options, worlds of different sizes, a file at which ranks cannot meet), AlreadyExists (the
  // port is taken, the rank has come before), and with kCausePeer Unavailable (nobody listens) or DeadlineExceeded
  // (which ranks did not come; the store accepts connections and does not answer).
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Open(RendezvousOptions options);

  ~Rendezvous();

  const RendezvousOptions& options() const { return options_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  // A meeting place of `size` of the ranks under `name`, this one being `rank` of them, with a connection of its own:
  // for another thread.
  absl::StatusOr<std::unique_ptr<Rendezvous>> Child(absl::string_view name, int64_t rank, int64_t size) const;

  // Tells the other ranks that `operation` has failed on this one, or that it is in none any more. Hears from them for
  // at most `patience`, and returns what is known: which ranks have ended or are stopped (of those on this machine), do
  // not answer, or are in another operation. To be called once.
  PeerReport ExplainFailure(const std::string& operation, absl::Duration patience) const;

 private:
  Rendezvous(RendezvousOptions options, c10::intrusive_ptr<c10d::Store> store, ProcessIdentity rank_zero);

  const RendezvousOptions options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const ProcessIdentity rank_zero_;  // who holds the store, for the case that it is gone
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_RENDEZVOUS_H_
