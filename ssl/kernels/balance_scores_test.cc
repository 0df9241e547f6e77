// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a kernel's blocks do, done by threads of the host. ssl/losses/sinkhorn_kernel_test.cc compares it
// with SinkhornAssignments.
#include "ssl/kernels/balance_scores.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/kernels/testing/thread_team.h"

namespace ssl {
namespace {

constexpr int kColumns = 64;

struct Balanced {
  std::vector<float> assignments, parts, masses;
};

std::vector<float> MakeScores(int samples, int prototypes) {
  std::vector<float> scores;
  for (int i = 0; i < samples * prototypes; ++i) scores.push_back(static_cast<float>(std::sin(0.7 * i)));
  return scores;
}

std::vector<float> Balance(const std::vector<float>& scores, int prototypes, int teams, int threads,
                           const BalanceOptions& options) {
  Balanced result;
  result.assignments.resize(scores.size());
  result.parts.resize(static_cast<size_t>(teams) * prototypes);
  result.masses.resize(prototypes);
  BalanceProblem problem;
  problem.scores = scores.data();
  problem.assignments = result.assignments.data();
  problem.parts = result.parts.data();
  problem.masses = result.masses.data();
  problem.samples = static_cast<int64_t>(scores.size()) / prototypes;
  problem.prototypes = prototypes;
  RunTeams(teams, threads, [&](const ThreadTeam& team, const ThreadTeams& all) {
    ScoreBalancer<ThreadTeam, ThreadTeams, kColumns>(team, all, problem, options).Run();
  });
  return result.assignments;
}

TEST(ScoreBalancer, TeamsAndThreads_AgreeWithOneThread) {
  for (const int samples : {1, 5, 12}) {
    for (const int prototypes : {1, 3, 17}) {
      const std::vector<float> scores = MakeScores(samples, prototypes);
      const std::vector<float> expected = Balance(scores, prototypes, 1, 1, {});
      for (const int teams : {1, 2, 4}) {
        for (const int threads : {1, 3}) {
          const std::vector<float> actual = Balance(scores, prototypes, teams, threads, {});
          for (size_t i = 0; i < scores.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-6) << "entry " << i;
        }
      }
    }
  }
}

TEST(ScoreBalancer, SameTeams_GiveTheSameBits) {
  const std::vector<float> scores = MakeScores(40, 30);
  EXPECT_EQ(Balance(scores, 30, 3, 2, {}), Balance(scores, 30, 3, 2, {}));
}

TEST(ScoreBalancer, NotANumber_EndsWithoutHanging) {
  std::vector<float> scores = MakeScores(6, 5);
  scores[7] = std::nanf("");
  const std::vector<float> assignments = Balance(scores, 5, 2, 2, {});
  EXPECT_TRUE(std::isnan(assignments[0]));
}

}  // namespace
}  // namespace ssl
