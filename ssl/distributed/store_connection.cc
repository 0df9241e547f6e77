// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/store_connection.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/network.h"
#include "ssl/distributed/store_file.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

constexpr absl::Duration kLongestTimeout = absl::Hours(7 * 24);  // c10d adds it to times of its own

Store ConnectToServer(const RendezvousOptions& options, absl::Time deadline) {
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<uint16_t>(options.port);
  tcp.isServer = Serves(options);
  tcp.timeout = StoreTimeout(deadline - absl::Now());
  if (tcp.isServer && options.listening_socket >= 0) tcp.masterListenFd = options.listening_socket;
  return c10::make_intrusive<c10d::TCPStore>(options.host, tcp);
}

Store OpenFile(const RendezvousOptions& options) {
  auto store = c10::make_intrusive<c10d::FileStore>(options.file, static_cast<int>(options.size));
  store->setTimeout(StoreTimeout(options.connect_timeout));
  return store;
}

// Rank 0 reaches itself, unless it is not where the others were told.
absl::Status OwnNameError(const RendezvousOptions& options, const absl::Status& error) {
  return absl::InvalidArgumentError(
      absl::StrCat("rank 0 was started on this machine, and is not to be found at ", MeetingPlaceOf(options),
                   " from here (", error.message(),
                   "): give all ranks a name or address of the machine that rank 0 runs on (MASTER_ADDR, or "
                   "config.DISTRIBUTED.RUN_ID)"));
}

// c10d's words, with what they mean here and the way out.
absl::Status ConnectError(const RendezvousOptions& options, const absl::Status& error) {
  const std::string why = absl::StrCat(" (", error.message(), ")");
  if (!options.file.empty()) {
    return absl::Status(error.code(), absl::StrCat("rendezvous file ", options.file, " cannot be used", why));
  }
  if (absl::StrContains(error.message(), "EADDRINUSE")) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", options.port, ", at which rank 0 is to listen, is taken by another process of this ",
                     "machine: choose another port for all ranks, or end what is left of an earlier run", why));
  }
  if (Serves(options)) return OwnNameError(options, error);
  return WithPeerAsCause(absl::UnavailableError(
      absl::StrCat("rank ", options.rank, " did not reach ", StoreHolder(options), " at ", MeetingPlaceOf(options),
                   " within ", absl::FormatDuration(options.connect_timeout), why, ": ", StoreHolder(options),
                   " has to run, its machine to have that name or address, and no firewall to stand between")));
}

// c10d's own waiting sleeps longer and longer, and does not say what it has met.
absl::Status AwaitServer(const RendezvousOptions& options, absl::Time deadline, WaitingLog* waiting) {
  const absl::Duration patience = deadline - absl::Now();
  const auto say = [&](const absl::Status& error) {
    waiting->SayIfDue([&] { return absl::StrCat(StoreHolder(options), " (", error.message(), ")"); });
  };
  if (Serves(options)) return AwaitAddress(options.host, patience, say);
  return AwaitListener(options.host, options.port, patience, say);
}

}  // namespace

bool Serves(const RendezvousOptions& options) {
  return options.file.empty() && options.rank == 0 && !options.store_is_served;
}

std::string StoreHolder(const RendezvousOptions& options) {
  return options.store_is_served ? "the launcher's store" : "rank 0";
}

std::string MeetingPlaceOf(const RendezvousOptions& options) {
  return options.file.empty() ? absl::StrCat(options.host, ":", options.port) : options.file;
}

absl::Status WithPeerAsCause(absl::Status status) { return WithDetail(std::move(status), kDetailCause, kCausePeer); }

absl::Status CheckRendezvous(const RendezvousOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", options.rank, " of ", options.size,
                                                   " ranks: expected a rank from 0 to the number of ranks less 1"));
  }
  if (options.connect_timeout <= absl::ZeroDuration() || options.connect_timeout > kLongestTimeout) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous: connect_timeout is ",
                                                   absl::FormatDuration(options.connect_timeout),
                                                   ", expected more than 0 and at most a week"));
  }
  if (options.host.empty() == options.file.empty()) {
    return absl::InvalidArgumentError("rendezvous: expected either a host with a port or a file");
  }
  if (!options.file.empty()) return CheckStoreFile(options.file);
  if (options.port < 1 || options.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("rendezvous at ", MeetingPlaceOf(options), ": expected a port from 1 to 65535"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Store> ConnectToStore(const RendezvousOptions& options, absl::Time deadline, WaitingLog* waiting) {
  Store store;
  if (options.file.empty()) {
    const absl::Status served = AwaitServer(options, deadline, waiting);
    if (!served.ok()) return ConnectError(options, served);
  }
  const SigpipeBlock for_threads_of_the_store;
  const absl::Status status = GuardTorch("c10d", [&] {
    store = options.file.empty() ? ConnectToServer(options, deadline) : OpenFile(options);
    if (!options.prefix.empty()) store = c10::make_intrusive<c10d::PrefixStore>(options.prefix, store);
    return absl::OkStatus();
  });
  if (absl::IsResourceExhausted(status)) return status;  // a thread of the store, at whatever address
  if (!status.ok()) return ConnectError(options, status);
  return store;
}

}  // namespace ssl
