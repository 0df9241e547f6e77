// SPDX-License-Identifier: Apache-2.0
//
// A TCP server's socket of the loopback interface, which no other host reaches: what a launcher has of the port that
// rank 0 is to serve where all ranks are on this host. Not thread-safe.
#ifndef SSL_LAUNCH_LISTENING_SOCKET_H_
#define SSL_LAUNCH_LISTENING_SOCKET_H_

#include <utility>

#include "absl/status/statusor.h"

namespace ssl {

class ListeningSocket {
 public:
  static constexpr char kHost[] = "127.0.0.1";

  // Port 0: one that nobody serves, which the system chooses. Unavailable, with the port and why, when it is taken, on
  // this interface or on all.
  // Programs that this process starts do not have it. The destructor closes it, which frees the port.
  static absl::StatusOr<ListeningSocket> Open(int port);

  ListeningSocket(ListeningSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket() { Close(); }

  int fd() const { return fd_; }      // -1 once closed
  int port() const { return port_; }  // also after that
  void Close();

 private:
  ListeningSocket(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  int port_;
};

}  // namespace ssl

#endif  // SSL_LAUNCH_LISTENING_SOCKET_H_
