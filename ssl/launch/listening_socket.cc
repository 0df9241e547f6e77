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

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Open(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;  // not every container has IPv6
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ListeningSocket server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port);
  if (server.fd_ < 0) return SocketError("opening a socket for", port);
  // Connections of an earlier server that are still closing do not hold the port; another server does.
  const int yes = 1;
  setsockopt(server.fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  socklen_t size = sizeof(address);
  auto* loopback = reinterpret_cast<sockaddr*>(&address);
  if (bind(server.fd_, loopback, size) != 0 || listen(server.fd_, SOMAXCONN) != 0) return SocketError("binding", port);
  if (getsockname(server.fd_, loopback, &size) != 0) return SocketError("asking for the number of", port);
  server.port_ = ntohs(address.sin_port);
  return server;
}

void ListeningSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace ssl
