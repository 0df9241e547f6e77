// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>

#include <memory>

#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

SinkhornOptions OptionsOf(const golden::Case& golden_case) {
  SinkhornOptions options;
  options.epsilon = golden_case.Double("epsilon", options.epsilon);
  options.num_iters = golden_case.Int("num_iters");
  options.double_precision = golden_case.Int("use_double") != 0;
  options.hard = golden_case.Int("hard") != 0;
  options.powerlaw = golden_case.Double("powerlaw");
  return options;
}

void CheckAssignments(const golden::Case& golden_case) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor actual,
                         SinkhornAssignments(step.inputs.at("scores"), OptionsOf(golden_case), *communicator));
    if (golden_case.Int("hard") != 0) {
      EXPECT_TRUE(golden::MatchesExactly(actual, step.outputs.at("assignments")));
    } else {
      EXPECT_TRUE(golden::Matches(actual, step.outputs.at("assignments")));
    }
  }
}

// Q is [prototypes, samples], not exponentiated.
void CheckRaw(const golden::Case& golden_case) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  for (const golden::Step& step : golden_case.steps) {
    ASSERT_OK_AND_ASSIGN(const at::Tensor actual,
                         BalanceAssignments(step.inputs.at("Q").t(), OptionsOf(golden_case), *communicator));
    EXPECT_TRUE(golden::Matches(actual, step.outputs.at("assignments")));
  }
}

TEST(SinkhornGolden, AssignmentsAreVissls) {
  golden::RunCategory(
      "sinkhorn",
      {{"sinkhorn", &CheckAssignments}, {"sinkhorn_powerlaw", &CheckAssignments}, {"sinkhorn_raw", &CheckRaw}});
}

}  // namespace
}  // namespace ssl
