// SPDX-License-Identifier: Apache-2.0
//
// A port is free until somebody serves it, on any address.
#include "ssl/launch/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(FreePortTest, IsFreeUntilItIsServed) {
  ASSERT_OK_AND_ASSIGN(const int port, FreePort());
  EXPECT_GT(port, 0);
  EXPECT_TRUE(PortIsFree(port));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_FALSE(PortIsFree(port));
  close(fd);
  EXPECT_TRUE(PortIsFree(port));
}

}  // namespace
}  // namespace ssl
