// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/host_name.h"

#include <sys/utsname.h>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(HostNameTest, IsTheKernelsName) {
  utsname machine;
  ASSERT_EQ(uname(&machine), 0);
  EXPECT_EQ(HostName("nobody"), machine.nodename[0] == '\0' ? "nobody" : machine.nodename);
}

}  // namespace
}  // namespace ssl
