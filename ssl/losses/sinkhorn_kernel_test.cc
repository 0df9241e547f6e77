// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the kernel, run by threads of the host, against SinkhornAssignments.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/kernels/balance_scores.h"
#include "ssl/kernels/testing/thread_team.h"
#include "ssl/losses/sinkhorn.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int kTeams = 3;
constexpr int kThreads = 2;
constexpr int kColumns = 2048;

at::Tensor MakeScores(int64_t samples, int64_t prototypes) {
  return at::sin(at::arange(samples * prototypes, at::kFloat).mul(0.7).add(0.3)).view({samples, prototypes});
}

at::Tensor BalanceByThreads(const at::Tensor& scores, const BalanceOptions& options) {
  at::Tensor assignments = at::empty_like(scores);
  at::Tensor parts = at::empty({kTeams, scores.size(1)}), masses = at::empty({scores.size(1)});
  BalanceProblem problem;
  problem.scores = scores.const_data_ptr<float>();
  problem.assignments = assignments.mutable_data_ptr<float>();
  problem.parts = parts.mutable_data_ptr<float>();
  problem.masses = masses.mutable_data_ptr<float>();
  problem.samples = scores.size(0);
  problem.prototypes = static_cast<int>(scores.size(1));
  RunTeams(kTeams, kThreads, [&](const ThreadTeam& team, const ThreadTeams& teams) {
    ScoreBalancer<ThreadTeam, ThreadTeams, kColumns>(team, teams, problem, options).Run();
  });
  return assignments;
}

void ExpectTheSame(const at::Tensor& scores, const SinkhornOptions& options) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(const at::Tensor expected, SinkhornAssignments(scores, options, *communicator));
  const at::Tensor actual = BalanceByThreads(
      scores,
      {static_cast<float>(options.epsilon), static_cast<int>(options.num_iters), static_cast<float>(options.powerlaw)});
  EXPECT_LE((actual - expected).abs().max().item<float>(), 1e-6f) << scores.sizes();
  EXPECT_TRUE(at::allclose(actual, expected, 1e-4, 0.0)) << scores.sizes();
}

TEST(SinkhornKernel, Shapes_AgreeWithTheOperators) {
  for (const int64_t samples : {1, 2, 5, 64}) {
    for (const int64_t prototypes : {1, 3, 30, 3000}) ExpectTheSame(MakeScores(samples, prototypes), {});
  }
}

TEST(SinkhornKernel, Options_AgreeWithTheOperators) {
  SinkhornOptions options;
  options.num_iters = 1;
  ExpectTheSame(MakeScores(20, 7), options);
  options.num_iters = 10;
  options.powerlaw = 0.5;
  options.epsilon = 0.03;
  ExpectTheSame(MakeScores(20, 7), options);
}

// exp() of what lies a hundred below the maximum is 0 in float32: a prototype has no mass, and is repaired.
TEST(SinkhornKernel, PrototypeWithoutMass_IsRepairedAlike) {
  at::Tensor scores = MakeScores(12, 5);
  scores.select(1, 2).fill_(-20.0);
  ExpectTheSame(scores, {});
}

TEST(SinkhornKernel, LargeScores_AgreeWithTheOperators) { ExpectTheSame(MakeScores(12, 5).add(1000.0), {}); }

}  // namespace
}  // namespace ssl
