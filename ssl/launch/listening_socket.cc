// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/listening_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

absl::Status SocketError(absl::string_view operation, int port) {
  return absl::UnavailableError(absl::StrCat(operation, " port ", port, " of this host: ", std::strerror(errno)));
}

// An IPv6 socket of any address takes the port of IPv4 as well; not every container has IPv6.
int AnySocket(sockaddr_in6* address) {
  address->sin6_family = AF_INET6;
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) return fd;
  address->sin6_family = AF_INET;  // port and an address of zeros stand in the same place
  return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Open(int port) {
  sockaddr_in6 address = {};
  address.sin6_port = htons(static_cast<uint16_t>(port));
  ListeningSocket server(AnySocket(&address), port);
  if (server.fd_ < 0) return SocketError("opening a socket for", port);
  // Connections of an earlier server that are still closing do not hold the port; another server does.
  const int yes = 1;
  setsockopt(server.fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  socklen_t size = address.sin6_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(server.fd_, any, size) != 0 || listen(server.fd_, SOMAXCONN) != 0) return SocketError("binding", port);
  if (getsockname(server.fd_, any, &size) != 0) return SocketError("asking for the number of", port);
  server.port_ = ntohs(address.sin6_port);
  return server;
}

void ListeningSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace ssl
