// SPDX-License-Identifier: Apache-2.0
//
// A port is taken while somebody serves it, on any address.
#include "ssl/launch/listening_socket.h"

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

TEST(ListeningSocketTest, AnyAddressCounts) {
  int port = 0;
  {
    ASSERT_OK_AND_ASSIGN(const ListeningSocket server, ListeningSocket::Open(0));
    port = server.port();
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_THAT(ListeningSocket::Open(port), StatusIs(absl::StatusCode::kUnavailable));
  close(fd);
}

}  // namespace
}  // namespace ssl
