// SPDX-License-Identifier: Apache-2.0
//
// A port is taken while somebody serves it.
#include "ssl/launch/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(ListeningSocketTest, HoldsItsPort) {
  int port = 0;
  {
    ASSERT_OK_AND_ASSIGN(const ListeningSocket server, ListeningSocket::Open(0));
    port = server.port();
    EXPECT_GT(port, 0);
    EXPECT_THAT(ListeningSocket::Open(port),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("binding port ", port))));
  }
  EXPECT_OK(ListeningSocket::Open(port));
}

// Of a socket that the system gives `address`, in network byte order, or that is connected to it.
class Socket {
 public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Socket() { close(fd_); }
  bool Serves(in_addr_t address, int port) {
    const sockaddr_in place = Place(address, port);
    return bind(fd_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) == 0 && listen(fd_, 1) == 0;
  }
  bool Reaches(in_addr_t address, int port) {
    const sockaddr_in place = Place(address, port);
    return connect(fd_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) == 0;
  }

 private:
  static sockaddr_in Place(in_addr_t address, int port) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<uint16_t>(port));
    place.sin_addr.s_addr = address;
    return place;
  }
  const int fd_;
};

TEST(ListeningSocketTest, APortThatIsServedOnAnyAddressIsTaken) {
  int port = 0;
  {
    ASSERT_OK_AND_ASSIGN(const ListeningSocket server, ListeningSocket::Open(0));
    port = server.port();
  }
  Socket other;
  ASSERT_TRUE(other.Serves(htonl(INADDR_ANY), port));
  EXPECT_THAT(ListeningSocket::Open(port), StatusIs(absl::StatusCode::kUnavailable));
}

// 127.0.0.2 is an address of this host that is not the socket's, as those of its other interfaces are.
TEST(ListeningSocketTest, OnlyTheLoopbackAddressIsServed) {
  ASSERT_OK_AND_ASSIGN(const ListeningSocket server, ListeningSocket::Open(0));
  EXPECT_TRUE(Socket().Reaches(inet_addr(ListeningSocket::kHost), server.port()));
  EXPECT_FALSE(Socket().Reaches(inet_addr("127.0.0.2"), server.port()));
}

}  // namespace
}  // namespace ssl
