// SPDX-License-Identifier: Apache-2.0
//
// Which rank comes to which meeting place (rendezvous.h).
#ifndef SSL_DISTRIBUTED_RENDEZVOUS_OPTIONS_H_
#define SSL_DISTRIBUTED_RENDEZVOUS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

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

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_RENDEZVOUS_OPTIONS_H_
