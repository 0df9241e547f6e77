// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
#include "tests/golden/rank_cases.h"

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
void CheckAssignmentsOfRank(const golden::Case& golden_case, const std::string& prefix, Communicator& communicator) {
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor actual,
                         SinkhornAssignments(step.Input(prefix + "scores"), OptionsOf(golden_case), communicator));
    EXPECT_TRUE(golden::Matches(actual, step.Expected(prefix + "assignments"))) << prefix;
  }
}

TEST(SinkhornGolden, AssignmentsAreVissls) {
  golden::RunCategory(
      "sinkhorn",
      {{"sinkhorn", &CheckAssignments}, {"sinkhorn_powerlaw", &CheckAssignments}, {"sinkhorn_raw", &CheckRaw}});
}

TEST(SinkhornGolden, AssignmentsOfSeveralRanksAreVissls) {
  golden::RunAsThreads({{"sinkhorn", &CheckAssignmentsOfRank}});
}

TEST(SinkhornGolden, AssignmentsOfTwoProcessesAreVissls) {
  golden::RunAsProcesses({{"sinkhorn", &CheckAssignmentsOfRank}});
}

}  // namespace
}  // namespace ssl
