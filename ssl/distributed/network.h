// SPDX-License-Identifier: Apache-2.0
//
// What has to be known of the network before ranks are connected. Functions are thread-safe.
#ifndef SSL_DISTRIBUTED_NETWORK_H_
#define SSL_DISTRIBUTED_NETWORK_H_

#include <signal.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ssl {

// By which of its addresses this machine reaches `host`, a name or an address: a numeric IPv4 or IPv6 address. Asks the
// routing table and sends nothing, but what it takes to resolve the name. NotFound when the name has no address,
// Unavailable when none of them can be reached from here.
absl::StatusOr<std::string> LocalAddressTowards(const std::string& host);

// Called between two tries, with what is wrong so far.
using OnFailedTry = absl::FunctionRef<void(const absl::Status& error)>;

// Returns once somebody accepts a TCP connection at `host`:`port`; Unavailable, with the last reason, when nobody has
// within `patience`. A name without an address is asked for again, too: a cluster may give it when the machine starts.
absl::Status AwaitListener(const std::string& host, int port, absl::Duration patience, OnFailedTry on_failed_try);

// Returns once `host` has an address; NotFound when it has none within `patience`.
absl::Status AwaitAddress(const std::string& host, absl::Duration patience, OnFailedTry on_failed_try);

// InvalidArgument, with the names that there are, when this machine has no network interface `name`.
absl::Status CheckInterface(const std::string& name);

// ResourceExhausted unless this process may open `count` file descriptors more.
absl::Status CheckDescriptors(int64_t count);

// While it lives, SIGPIPE is blocked in this thread, and for good in threads that are started: to write into a
// connection that the other side has closed is then an error, not the end of the process. (Gloo and c10d do not see to
// that, and a library must not change what a signal does to its program.)
class SigpipeBlock {
 public:
  SigpipeBlock();
  ~SigpipeBlock();
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t previous_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_NETWORK_H_
