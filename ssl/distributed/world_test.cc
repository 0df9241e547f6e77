// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/world.h"

#include <filesystem>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

WorldPlace PlaceOf(const GlooOptions& options, int64_t local_size) {
  WorldPlace place;
  place.rank = options.rendezvous.rank;
  place.size = options.rendezvous.size;
  place.local_size = local_size;
  place.local_rank = place.rank % local_size;
  place.store_file = options.rendezvous.file + ".world";
  return place;
}

size_t Threads() {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) count += task.exists() ? 1 : 0;
  return count;
}

TEST(WorldTest, MeetingPlace_IsFilePortOrFreePort) {
  WorldPlace place;
  EXPECT_EQ(MeetingPlace(place), "a free port of this host");
  place.host = "gpu1";
  place.port = 29500;
  EXPECT_EQ(MeetingPlace(place), "gpu1:29500");
  place.store_file = "/shared/store";
  EXPECT_EQ(MeetingPlace(place), "/shared/store");
}

TEST(WorldTest, WorldOfOne_HasNeitherPortNorThreads) {
  WorldPlace place;
  place.host = "no.such.host.invalid";
  place.port = 1;
  const size_t before = Threads();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> communicator, OpenWorld(place, {}));
  EXPECT_EQ(communicator->size(), 1);
  EXPECT_EQ(Threads(), before);
}

// torchrun's agents of two hosts, of which one has started its ranks again more often.
TEST(WorldTest, RanksWhoseRestartsAreCountedApart_Meet) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto open = [&](int64_t rank) {
    WorldPlace place;
    place.rank = rank;
    place.size = 2;
    place.host = "127.0.0.1";
    place.port = store->getPort();
    place.store_is_served = true;
    place.restart_count = 1 - rank;
    return OpenWorld(place, {absl::Seconds(5), absl::Seconds(5)}).status();
  };
  absl::Status of_rank_one;
  std::thread other([&] { of_rank_one = open(1); });
  EXPECT_OK(open(0));
  other.join();
  EXPECT_OK(of_rank_one);
}

TEST(WorldTest, RanksMeetAndKnowTheirHosts) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    absl::StatusOr<std::unique_ptr<Communicator>> world = OpenWorld(PlaceOf(options, 2), {});
    if (!world.ok()) return world.status();
    Communicator& communicator = **world;
    EXPECT_EQ(RanksPerHost(PlaceOf(options, 2), communicator).value_or(-1), 2);
    // Rank 1 is the only one of two on its host.
    EXPECT_THAT(RanksPerHost(PlaceOf(options, communicator.rank() + 1), communicator),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("with LOCAL_WORLD_SIZE 2 there are 1 of LOCAL_RANK 1 and 0 of LOCAL_RANK 0")));
    // Whatever their places say.
    EXPECT_EQ(RanksOnThisHost(communicator).value_or(-1), 2);
    return communicator.Barrier();
  }));
}

TEST(WorldTest, HostsOfUnequalSizes_AreHostsOfOneRank) {
  EXPECT_OK(ProcessWorld(3).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    const bool is_last = options.rendezvous.rank == 2;
    absl::StatusOr<std::unique_ptr<Communicator>> world = OpenWorld(PlaceOf(options, 1), {});
    if (!world.ok()) return world.status();
    EXPECT_EQ(RanksPerHost(PlaceOf(options, is_last ? 1 : 2), **world).value_or(-1), 1);
    return (*world)->Barrier();
  }));
}

}  // namespace
}  // namespace ssl
