// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

SinkhornOptions OptionsOf(const golden::Case& golden_case) {
  SinkhornOptions options;
  options.epsilon = golden_case.Double("epsilon", options.epsilon);
  options.num_iters = golden_case.Int("num_iters");
  options.double_precision = golden_case.Flag("use_double");
  options.hard = golden_case.Flag("hard");
  options.powerlaw = golden_case.Double("powerlaw");
  return options;
}

void CheckAssignments(const golden::Case& golden_case) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor actual,
                         SinkhornAssignments(step.Input("scores"), OptionsOf(golden_case), *communicator));
    if (golden_case.Flag("hard")) {
      EXPECT_TRUE(golden::MatchesExactly(actual, step.Expected("assignments")));
    } else {
      EXPECT_TRUE(golden::Matches(actual, step.Expected("assignments")));
    }
  }
}

// Q is [prototypes, samples], not exponentiated.
void CheckRaw(const golden::Case& golden_case) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor actual,
                         BalanceAssignments(step.Input("Q").t(), OptionsOf(golden_case), *communicator));
    EXPECT_TRUE(golden::Matches(actual, step.Expected("assignments")));
  }
}

// Columns of Q are split over ranks; sums and maxima are of all.
void CheckAssignmentsOfRanks(const golden::Case& golden_case) {
  const SinkhornOptions options = OptionsOf(golden_case);
  const int64_t world_size = golden_case.IntIn("world", 1, 16);
  for (const golden::Step& step : golden_case.steps) {
    for (int64_t rank = 0; rank < world_size; ++rank) {  // a rank that stops lets the others wait
      ASSERT_TRUE(step.Input(absl::StrCat("rank", rank, ".scores")).defined());
    }
    ThreadWorld world(world_size, absl::Seconds(60));
    EXPECT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
      const std::string prefix = absl::StrCat("rank", communicator.rank(), ".");
      SSL_ASSIGN_OR_RETURN(const at::Tensor actual,
                           SinkhornAssignments(step.Input(prefix + "scores"), options, communicator));
      EXPECT_TRUE(golden::Matches(actual, step.Expected(prefix + "assignments"))) << prefix;
      return absl::OkStatus();
    }));
  }
}

TEST(SinkhornGolden, AssignmentsAreVissls) {
  golden::RunCategory(
      "sinkhorn",
      {{"sinkhorn", &CheckAssignments}, {"sinkhorn_powerlaw", &CheckAssignments}, {"sinkhorn_raw", &CheckRaw}});
}

TEST(SinkhornGolden, AssignmentsOfSeveralRanksAreVissls) {
  golden::RunCategory("dist", {{"sinkhorn", &CheckAssignmentsOfRanks}},
                      /*out_of_scope=*/
                      {"barlow_twins_loss", "deepclusterv2_cluster_memory", "dino_loss", "moco_infonce",
                       "simclr_info_nce_loss", "swav_loss"});
}

}  // namespace
}  // namespace ssl
