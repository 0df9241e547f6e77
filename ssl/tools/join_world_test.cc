// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/join_world.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/tools/rank_threads.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kThisProgram[] = "/proc/self/exe";

ConfigNode Root(const std::string& text) { return ParseYaml(text, "run.yaml", nullptr).value_or(ConfigNode()); }

TEST(JoinWorldTest, AWorldOfOneIsAtOnceThere) {
  ASSERT_OK_AND_ASSIGN(const JoinedWorld world, JoinWorld(WorldPlace(), WorldOptions()));
  EXPECT_EQ(world.communicator->size(), 1);
  EXPECT_EQ(world.shape.ranks(), 1);
  EXPECT_OK(CheckSameStart(Root("{a: 1}"), kThisProgram, *world.communicator));
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "none" : value;
}

TEST(JoinWorldTest, KeysOfNccl_AreInItsEnvironmentBeforeItStarts) {
  EXPECT_OK(ProcessWorld(2).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    WorldPlace place;
    place.rank = options.rendezvous.rank;
    place.size = options.rendezvous.size;
    place.local_rank = options.rendezvous.rank;
    place.local_size = options.rendezvous.size;
    place.store_file = options.rendezvous.file;
    unsetenv("NCCL_DEBUG");
    setenv("NCCL_SOCKET_NTHREADS", "2", 1);
    SSL_RETURN_IF_ERROR(JoinWorld(place, WorldOptions()).status());
    EXPECT_EQ(Variable("NCCL_DEBUG"), "none");
    EXPECT_EQ(Variable("NCCL_SOCKET_NTHREADS"), "2");
    WorldOptions keys;
    keys.backend = "gloo";
    keys.nccl_debug = true;
    keys.nccl_socket_threads = "4";
    place.store_file += ".second";
    SSL_RETURN_IF_ERROR(JoinWorld(place, keys).status());
    EXPECT_EQ(Variable("NCCL_DEBUG"), "INFO");
    EXPECT_EQ(Variable("NCCL_SOCKET_NTHREADS"), "4");
    return absl::OkStatus();
  }));
}

// Two ranks of this host, each of which is told of local_size and cores (WorldPlace), compute with `expected` threads
// where they are bound to no cores of their own.
absl::Status ComputeWith(int64_t local_size, int64_t cores, int64_t expected) {
  return ProcessWorld(2).RunWithOptions([=](const GlooOptions& options) -> absl::Status {
    WorldPlace place;
    place.rank = options.rendezvous.rank;
    place.size = options.rendezvous.size;
    place.local_rank = place.rank % local_size;
    place.local_size = local_size;
    place.cores = cores;
    place.store_file = options.rendezvous.file;
    unsetenv("OMP_NUM_THREADS");
    const int64_t alone = at::get_num_threads();
    SSL_RETURN_IF_ERROR(JoinWorld(place, WorldOptions()).status());
    const Cores here = CoresOfThisProcess();
    EXPECT_EQ(at::get_num_threads(), here.open < here.online ? alone : expected);
    return absl::OkStatus();
  });
}

int64_t HalfOfTheCores() { return std::max<int64_t>(1, CoresOfThisProcess().online / 2); }

TEST(JoinWorldTest, RanksOfAHostShareItsCores) { EXPECT_OK(ComputeWith(2, 0, HalfOfTheCores())); }

TEST(JoinWorldTest, RanksThatWereStartedApartShareThemAsWell) { EXPECT_OK(ComputeWith(1, 0, HalfOfTheCores())); }

TEST(JoinWorldTest, ARankComputesOnTheCoresThatItWasGiven) { EXPECT_OK(ComputeWith(1, 1, 1)); }

TEST(JoinWorldTest, EqualConfigurationsMayComeFromOtherLines) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) {
    return CheckSameStart(Root(communicator.rank() == 0 ? "a: 1\nb: [x]" : "a: 1\n\nb: ['x']"), kThisProgram,
                          communicator);
  }));
}

// What every rank is told when rank 1 has `other` and the rest `common`.
absl::Status Differing(const std::string& common, const std::string& other) {
  return ProcessWorld(3).Run([&](Communicator& communicator) {
    const absl::Status status =
        CheckSameStart(Root(communicator.rank() == 1 ? other : common), kThisProgram, communicator);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 1 (on ")));
    EXPECT_EQ(IsSaidOnThisHost(status), communicator.rank() > 0);
    return status;
  });
}

TEST(JoinWorldTest, TheFirstKeyThatDiffersIsNamedWithRankAndHost) {
  EXPECT_THAT(Differing("config: {a: 1, b: {c: 2, d: 3}}", "config: {a: 1, b: {c: 2, d: 4}}").message(),
              AllOf(HasSubstr("rank 1 (on "), HasSubstr("config.b.d is '4' (run.yaml:1), on rank 0 '3'")));
}

TEST(JoinWorldTest, AKeyThatOneLacksIsNamed) {
  EXPECT_THAT(Differing("config: {a: 1}", "config: {a: 1, b: [2, 3]}").message(),
              HasSubstr("config.b is [2, 3] (run.yaml:1), on rank 0 not there"));
}

TEST(JoinWorldTest, AKeyThatTheOthersHaveIsNamed) {
  EXPECT_THAT(Differing("config: {a: 1, b: null}", "config: {a: 1}").message(),
              HasSubstr("config.b is not there, on rank 0 null"));
}

TEST(JoinWorldTest, AnElementOfAListIsNamed) {
  EXPECT_THAT(Differing("config: {a: [{name: x}, {name: y}]}", "config: {a: [{name: x}, {name: z}]}").message(),
              HasSubstr("config.a.1.name is 'z' (run.yaml:1), on rank 0 'y'"));
}

TEST(JoinWorldTest, AnotherBuildIsNamed) {
  const absl::Status status = ProcessWorld(2).Run([](Communicator& communicator) {
    return CheckSameStart(Root("a: 1"), communicator.rank() == 0 ? kThisProgram : "/proc/self/environ", communicator);
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("rank 1 (on "), HasSubstr("runs another build of this program"))));
}

}  // namespace
}  // namespace ssl
