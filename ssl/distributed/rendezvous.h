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

namespace c10d {
class Store;
}

namespace ssl {

struct RendezvousOptions {
  int64_t rank = 0;
  int64_t size = 1;

  // Where rank 0 listens: a name or an address by which every rank reaches it. The store asks nobody for a password and
  // listens on all interfaces of rank 0's machine, so the network between the ranks has to be a trusted one.
  std::string host;
  int port = 0;
  // Rank 0: a socket that is bound to `port`, and may listen already, and is taken over; -1 for none. So a launcher
  // that has chosen a free port holds it until rank 0 runs, and one that starts all ranks on its own machine lets
  // nobody else connect.
  int listening_socket = -1;
  // Somebody else serves the store at host and port already, as torchrun's agent does: rank 0 is a client, too. Such a
  // store outlives starts. Each time that rank 0 comes it begins another one, which the other ranks join: nobody has to
  // tell them which.
  bool store_is_served = false;

  // Instead of host and port: a file on a file system that every rank sees, in a directory that exists.
  std::string file;

  // Keeps apart what is kept in one store: with a name of its own (a run's id, the number of its start) a run that is
  // started anew does not read what its predecessor left in the file. The same for all ranks.
  std::string prefix;

  // How long to wait for the store to listen, and for all ranks to come, in all.
  absl::Duration connect_timeout = absl::Minutes(5);
};

// Used by one thread at a time.
class Rendezvous {
 public:
  // Collective. A rank that meets a start in which it was another process already, one that is not known to run (a
  // rank that was started again while the others still end), waits for the next start.
  // Errors: InvalidArgument (options, worlds of different sizes), AlreadyExists (the port is taken, the rank has come
  // before), NotFound (the file's directory), and with kCausePeer Unavailable (nobody listens) or DeadlineExceeded
  // (which ranks did not come; the store accepts connections and does not answer).
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Open(RendezvousOptions options);

  ~Rendezvous();

  const RendezvousOptions& options() const { return options_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  // A meeting place of `size` of the ranks under `name`, this one being `rank` of them, with a connection of its own:
  // for another thread.
  absl::StatusOr<std::unique_ptr<Rendezvous>> Child(absl::string_view name, int64_t rank, int64_t size) const;

  // Tells the other ranks that `operation` has failed on this one, hears from them for at most `patience`, and returns
  // what is known: which ranks have ended or are stopped (of those on this machine), do not answer, or are in another
  // operation. To be called once.
  PeerReport ExplainFailure(const std::string& operation, absl::Duration patience) const;

 private:
  Rendezvous(RendezvousOptions options, c10::intrusive_ptr<c10d::Store> store, ProcessIdentity rank_zero);

  const RendezvousOptions options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const ProcessIdentity rank_zero_;  // who holds the store, for the case that it is gone
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_RENDEZVOUS_H_
