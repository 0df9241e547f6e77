// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/network.h"

#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr absl::Duration kRetryPeriod = absl::Milliseconds(100);

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints = {};
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found, &freeaddrinfo);
  return absl::NotFoundError(absl::StrCat("host \"", host, "\" has no address: ", gai_strerror(error)));
}

// The own address that the system chooses for packets to `remote`; empty, with errno, when there is no way.
std::string LocalAddress(const addrinfo& remote) {
  const int datagrams = socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (datagrams < 0) return "";
  const absl::Cleanup closer = [datagrams] { close(datagrams); };
  // Connecting a datagram socket sends nothing: it only looks up the route.
  if (connect(datagrams, remote.ai_addr, remote.ai_addrlen) != 0) return "";
  sockaddr_storage own;
  socklen_t length = sizeof(own);
  char text[NI_MAXHOST] = "";
  if (getsockname(datagrams, reinterpret_cast<sockaddr*>(&own), &length) != 0) return "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

// 0, or an errno.
int TryToConnect(const addrinfo& remote, absl::Duration patience) {
  const int stream = socket(remote.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (stream < 0) return errno;
  const absl::Cleanup closer = [stream] { close(stream); };
  // A machine that drops packets would be waited for by the system for minutes.
  const timeval limit = absl::ToTimeval(std::max(patience, absl::Milliseconds(1)));
  setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(stream, remote.ai_addr, remote.ai_addrlen) == 0) return 0;
  return errno == EINPROGRESS ? ETIMEDOUT : errno;
}

absl::Status ConnectOnce(const std::string& host, int port, absl::Time deadline) {
  SSL_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, port, SOCK_STREAM));
  int error = 0;
  for (const addrinfo* remote = addresses.get(); remote != nullptr; remote = remote->ai_next) {
    error = TryToConnect(*remote, deadline - absl::Now());
    if (error == 0) return absl::OkStatus();
  }
  return absl::UnavailableError(strerror(error));
}

absl::Status TryUntil(absl::Time deadline, absl::FunctionRef<absl::Status()> attempt, OnFailedTry on_failed_try) {
  while (true) {
    absl::Status status = attempt();
    if (status.ok() || absl::Now() + kRetryPeriod >= deadline) return status;
    on_failed_try(status);
    absl::SleepFor(kRetryPeriod);
  }
}

// Looking takes a descriptor, too: where there is none left, all of them are open.
int64_t OpenDescriptors(const rlimit& limit) {
  std::error_code error;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (error) return error.value() == EMFILE ? static_cast<int64_t>(limit.rlim_cur) : 0;
  return std::distance(begin(descriptors), end(descriptors)) - 1;
}

std::string WayOut(const rlimit& limit, int64_t needed) {
  if (limit.rlim_max == RLIM_INFINITY) return absl::StrCat("ulimit -n ", needed, " before it starts");
  if (static_cast<rlim_t>(needed) > limit.rlim_max) {
    return absl::StrCat("fewer ranks, or a higher hard limit than ", limit.rlim_max, ", which root can give");
  }
  return absl::StrCat("ulimit -n ", needed, " before it starts; up to ", limit.rlim_max, " is allowed here");
}

sigset_t OnlySigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

}  // namespace

absl::StatusOr<std::string> LocalAddressTowards(const std::string& host) {
  // The port plays no part in routing.
  SSL_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host, 9, SOCK_DGRAM));
  for (const addrinfo* remote = addresses.get(); remote != nullptr; remote = remote->ai_next) {
    std::string address = LocalAddress(*remote);
    if (!address.empty()) return address;
  }
  return absl::UnavailableError(absl::StrCat("host \"", host, "\" cannot be reached from here: ", strerror(errno)));
}

absl::Status AwaitListener(const std::string& host, int port, absl::Duration patience, OnFailedTry on_failed_try) {
  const absl::Time deadline = absl::Now() + patience;
  const absl::Status status = TryUntil(
      deadline, [&] { return ConnectOnce(host, port, deadline); }, on_failed_try);
  return status.ok() ? status : absl::UnavailableError(status.message());
}

absl::Status AwaitAddress(const std::string& host, absl::Duration patience, OnFailedTry on_failed_try) {
  return TryUntil(
      absl::Now() + patience, [&] { return Resolve(host, 9, SOCK_STREAM).status(); }, on_failed_try);
}

absl::Status CheckInterface(const std::string& name) {
  if (if_nametoindex(name.c_str()) != 0) return absl::OkStatus();
  std::vector<std::string> names;
  struct if_nameindex* const list = if_nameindex();
  for (const struct if_nameindex* entry = list; entry != nullptr && entry->if_index != 0; ++entry) {
    names.push_back(entry->if_name);
  }
  if_freenameindex(list);
  return absl::InvalidArgumentError(
      absl::StrCat("network interface \"", name, "\" is not one of this machine's: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckDescriptors(int64_t count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  const int64_t open = OpenDescriptors(limit);
  if (static_cast<rlim_t>(open + count) <= limit.rlim_cur) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("this process may have ", limit.rlim_cur, " file descriptors, ",
                                                   open, " are open and ", count,
                                                   " more are needed: ", WayOut(limit, open + count)));
}

SigpipeBlock::SigpipeBlock() {
  const sigset_t sigpipe = OnlySigpipe();
  pthread_sigmask(SIG_BLOCK, &sigpipe, &previous_);
}

SigpipeBlock::~SigpipeBlock() {
  if (sigismember(&previous_, SIGPIPE) == 1) return;
  // One that came to this thread in the meantime would be delivered by the next line.
  const sigset_t sigpipe = OnlySigpipe();
  const timespec at_once = {};
  sigtimedwait(&sigpipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace ssl
