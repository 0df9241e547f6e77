// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_check.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/run_world.h"

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

// Also by --check_config and --dry_run, and once rather than by each rank.
TEST(LaunchCheckTest, AFileAtWhichRanksCannotMeet) {
  RunWorld world;
  world.launches = true;
  world.place.size = world.place.local_size = 2;
  const std::string folder = MakeTempDir("launch_check");
  world.place.store_file = folder + "/store";
  EXPECT_OK(CheckCanStart(world));
  world.place.store_file = folder;
  EXPECT_THAT(CheckCanStart(world), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no file")));
  world.place.store_file = folder + "/none/store";
  EXPECT_THAT(CheckCanStart(world), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("there is no directory")));
}

TEST(LaunchCheckTest, ThisHostHasRoomForOne) { EXPECT_OK(CheckRoom(1, HostRoom::OfThisHost())); }

}  // namespace
}  // namespace ssl
