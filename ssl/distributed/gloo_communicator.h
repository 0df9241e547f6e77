// SPDX-License-Identifier: Apache-2.0
//
// A Communicator between processes, over LibTorch's c10d and its Gloo backend: TCP, tensors of the CPU. Tensors of
// other devices are copied there and back. One process may hold several.
//
// When another rank ends, hangs or breaks a connection, an operation ends with kCausePeer and Unavailable (a connection
// broke) or DeadlineExceeded (nothing came within the timeout). The message names the operation, this rank, and which
// ranks do not answer; kDetailSilent (process_identity.h) of the latter has their processes. Such a communicator is out
// of use: it closes its connections, so that the error travels to all ranks at once, and every later call returns the
// same error. The same when this rank lacks memory in the middle of an operation (ResourceExhausted, kCauseMemory).
//
// Differences from ranks that are threads: float16 and bfloat16 sums are rounded after each addition.
#ifndef SSL_DISTRIBUTED_GLOO_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_GLOO_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/rendezvous.h"

namespace ssl {

struct GlooOptions {
  RendezvousOptions rendezvous;

  // How long an operation waits for the other ranks.
  absl::Duration timeout = absl::Minutes(2);

  // The network interface ("eth0") for the connections between ranks. Empty: the one by which the rendezvous's host is
  // reached; with a file, the one of this machine's own name, or the loopback interface where that name has no address.
  std::string interface;

  // Before each operation the ranks compare what they call: name, ordinal number, type and shape, in one reduction of
  // 16 bytes. Ranks that differ get an Internal error that names both calls. Without it Gloo may mix data of different
  // operations, wait for the timeout, or end the process (it throws in a thread of its own when a message is too long).
  bool check_operations = true;
};

// Collective. Errors: those of Rendezvous::Open, and InvalidArgument for an interface that is not there.
absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(const GlooOptions& options);

// The same between ranks that have met: options.rendezvous is what they met by.
absl::StatusOr<std::unique_ptr<Communicator>> MakeGlooCommunicator(std::unique_ptr<Rendezvous> rendezvous,
                                                                   const GlooOptions& options);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_GLOO_COMMUNICATOR_H_
