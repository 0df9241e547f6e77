// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_check.h"

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kGigabyte = int64_t{1} << 30;

auto Refused(const char* why) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr("ranks on this host (--launch=local:N"), HasSubstr(why)));
}

TEST(LaunchCheckTest, WhatAHostHasRoomFor) {
  const HostRoom room{2, 64 * kGigabyte, 1024, 4000};
  EXPECT_OK(CheckRoom(1, room));
  EXPECT_OK(CheckRoom(504, room));
  EXPECT_THAT(CheckRoom(505, room), Refused("each takes 2 file descriptors of this process, which may have 1024"));
  EXPECT_THAT(CheckRoom(100'000, room), Refused("a user may have 4000 processes (ulimit -u)"));
  const HostRoom small{2, kGigabyte, 1024, 4000};
  EXPECT_OK(CheckRoom(16, small));
  EXPECT_THAT(CheckRoom(17, small), Refused("each takes at least 64 MiB of memory, without model and data, and 1024"));
}

TEST(LaunchCheckTest, ThisHostHasRoomForOne) { EXPECT_OK(CheckRoom(1, HostRoom::OfThisHost())); }

}  // namespace
}  // namespace ssl
