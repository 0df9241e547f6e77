// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

ParameterGroup GroupWithGradients(const std::vector<float>& gradients) {
  ParameterGroup group;
  for (const float gradient : gradients) {
    at::Tensor parameter = at::ones({3}).set_requires_grad(true);
    parameter.mutable_grad() = at::full({3}, gradient);
    group.parameters.push_back(parameter);
  }
  return group;
}

// One training step whose gradients hold `gradient`; whether the optimizer may step.
bool Step(GradScaler& scaler, float gradient) {
  std::vector<ParameterGroup> groups = {GroupWithGradients({gradient})};
  const bool finite = scaler.Unscale(groups).item<float>() == 0.0F;
  scaler.Update();
  return finite;
}

// The rules of torch.amp.GradScaler, by hand.
struct NaiveScaler {
  GradScalerOptions options;
  float scale = static_cast<float>(options.initial_scale);
  int64_t finite_steps = 0;

  void Update(bool finite) {
    if (!finite) {
      scale = static_cast<float>(scale * options.backoff_factor);
      finite_steps = 0;
      return;
    }
    if (++finite_steps < options.growth_interval) return;
    finite_steps = 0;
    const float grown = static_cast<float>(scale * options.growth_factor);
    if (std::isfinite(grown)) scale = grown;
  }
};

// Steps at random overflow, one in `one_in`.
void ExpectTraceOfTheRules(const GradScalerOptions& options, int steps, int one_in) {
  GradScaler scaler(options);
  NaiveScaler naive{options};
  std::mt19937 random(7);
  int changes = 0;
  for (int step = 0; step < steps; ++step) {
    const bool finite = random() % one_in != 0;
    const float before = naive.scale;

    ASSERT_EQ(Step(scaler, finite ? 1.0f : kInf), finite) << "step " << step;
    naive.Update(finite);

    ASSERT_EQ(scaler.scale(), naive.scale) << "step " << step;
    if (naive.scale != before) ++changes;
  }
  EXPECT_GT(changes, 10);
}

// What torch 2.11's GradScaler did in 10,000 steps: the steps that changed the scale, and to what. Made by
//   s = torch.amp.GradScaler("cpu", growth_interval=300); p = torch.nn.Parameter(torch.ones(1))
//   o = torch.optim.SGD([p], lr=0.0); x = 1
//   for step in range(10000):
//     x = x * 1103515245 + 12345 & 0x7fffffff
//     s.scale(torch.ones(1))
//     p.grad = torch.tensor([1.0 if (x >> 16) % 500 != 0 else float("inf")])
//     s.step(o); s.update()
TEST(GradScaler, TenThousandSteps_AreThoseOfTorch) {
  const std::vector<std::pair<int, double>> expected = {
      {133, 32768},  {205, 16384},   {505, 32768},  {805, 65536},  {865, 32768},  {1165, 65536}, {1465, 131072},
      {1759, 65536}, {2059, 131072}, {2113, 65536}, {2119, 32768}, {2222, 16384}, {2436, 8192},  {2736, 16384},
      {3036, 32768}, {3142, 16384},  {3269, 8192},  {3569, 16384}, {3677, 8192},  {3977, 16384}, {4277, 32768},
      {4577, 65536}, {4619, 32768},  {4839, 16384}, {4947, 8192},  {4971, 4096},  {5271, 8192},  {5571, 16384},
      {5820, 8192},  {6120, 16384},  {6420, 32768}, {6553, 16384}, {6853, 32768}, {7047, 16384}, {7347, 32768},
      {7497, 16384}, {7797, 32768},  {7818, 16384}, {7877, 8192},  {8177, 16384}, {8260, 8192},  {8560, 16384},
      {8780, 8192},  {9080, 16384},  {9169, 8192},  {9392, 4096},  {9692, 8192},  {9711, 4096},  {9800, 2048},
      {9810, 1024},  {9977, 512}};
  GradScalerOptions options;
  options.growth_interval = 300;
  GradScaler scaler(options);
  std::vector<std::pair<int, double>> changes;
  uint64_t x = 1;
  double scale = scaler.scale();
  for (int step = 0; step < 10000; ++step) {
    x = (x * 1103515245 + 12345) & 0x7fffffff;
    Step(scaler, (x >> 16) % 500 != 0 ? 1.0f : kInf);
    if (scaler.scale() == scale) continue;
    scale = scaler.scale();
    changes.emplace_back(step, scale);
  }

  EXPECT_EQ(changes, expected);
}

TEST(GradScaler, TenThousandSteps_FollowTheRules) {
  GradScalerOptions options;
  options.growth_interval = 40;
  ExpectTraceOfTheRules(options, 10000, /*one_in=*/60);
}

TEST(GradScaler, OtherFactors_FollowTheRules) {
  ExpectTraceOfTheRules({1000.0, 1.7, 0.3, 5, 0.0}, 2000, /*one_in=*/12);
}

TEST(GradScaler, Scale_StaysAtTheLastFiniteValue) {
  ExpectTraceOfTheRules({65536.0, 2.0, 0.5, 1, 0.0}, 1000, /*one_in=*/10000);
}

TEST(GradScaler, Scale_MultipliesTheLossInItsGraph) {
  GradScaler scaler({8.0, 2.0, 0.5, 2000, 0.0});
  const at::Tensor parameter = at::ones({}).set_requires_grad(true);

  scaler.Scale(parameter * 3.0).backward();

  EXPECT_EQ(parameter.grad().item<float>(), 24.0f);
}

TEST(GradScaler, Unscale_DividesEveryGradient) {
  GradScaler scaler({8.0, 2.0, 0.5, 2000, 0.0});
  std::vector<ParameterGroup> groups = {GroupWithGradients({16.0f, 4.0f}), GroupWithGradients({-8.0f})};
  groups[0].parameters.push_back(at::ones({2}).set_requires_grad(true));  // without a gradient

  EXPECT_EQ(scaler.Unscale(groups).item<float>(), 0.0F);

  EXPECT_TRUE(at::equal(groups[0].parameters[0].grad(), at::full({3}, 2.0f)));
  EXPECT_TRUE(at::equal(groups[0].parameters[1].grad(), at::full({3}, 0.5f)));
  EXPECT_TRUE(at::equal(groups[1].parameters[0].grad(), at::full({3}, -1.0f)));
  EXPECT_FALSE(groups[0].parameters[2].grad().defined());
}

TEST(GradScaler, InfinityAndNan_AreNotFinite) {
  GradScaler scaler(GradScalerOptions{});

  EXPECT_FALSE(Step(scaler, kInf));
  EXPECT_FALSE(Step(scaler, -kInf));
  EXPECT_FALSE(Step(scaler, std::nanf("")));
  EXPECT_TRUE(Step(scaler, 1.0f));
  EXPECT_EQ(scaler.scale(), 65536.0 / 8);
}

TEST(GradScaler, NoGradients_AreFinite) {
  GradScaler scaler(GradScalerOptions{});
  std::vector<ParameterGroup> groups(1);

  EXPECT_EQ(scaler.Unscale(groups).item<float>(), 0.0F);
}

TEST(GradScaler, StaticScale_NeverChanges) {
  GradScalerOptions options;
  options.static_scale = 128.0;
  options.growth_interval = 1;
  GradScaler scaler(options);

  EXPECT_TRUE(Step(scaler, 1.0f));
  EXPECT_FALSE(Step(scaler, kInf));

  EXPECT_EQ(scaler.scale(), 128.0);
}

TEST(GradScaler, RestoredState_GoesOnLikeTheOriginal) {
  GradScalerOptions options;
  options.growth_interval = 3;
  GradScaler straight(options);
  Step(straight, kInf);
  Step(straight, 1.0f);
  Step(straight, 1.0f);
  GradScaler restored(options);

  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(straight));
  ASSERT_OK(RestoreState(restored, state, "memory"));
  EXPECT_EQ(restored.scale(), 32768.0);
  Step(restored, 1.0f);

  EXPECT_EQ(restored.scale(), 65536.0);
}

TEST(GradScaler, SkippedUpdates_AreCountedInARow) {
  GradScaler scaler({});
  std::vector<int64_t> counts;
  for (const float gradient : {1.0f, kInf, kInf, 1.0f, kInf, kInf, kInf}) {
    Step(scaler, gradient);
    counts.push_back(scaler.skipped_updates());
  }
  EXPECT_EQ(counts, std::vector<int64_t>({0, 1, 2, 0, 1, 2, 3}));

  GradScaler restored({});
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(scaler));
  ASSERT_OK(RestoreState(restored, state, "memory"));
  EXPECT_EQ(restored.skipped_updates(), 3) << "a run that is interrupted again and again has the same limit";
}

// As the loss scale was saved when the count was a number of the host.
class SavedScale : public Stateful {
 public:
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("scale", scale_);
    visitor.Tensor("growth_tracker", tracker_);
    visitor.Int("skipped_updates", skipped_);
  }

 private:
  at::Tensor scale_ = at::full({}, 512.0, at::kFloat);
  at::Tensor tracker_ = at::full({}, 3, at::kInt);
  int64_t skipped_ = 7;
};

TEST(GradScaler, StateWithACountOfTheHost_IsTheSame) {
  SavedScale saved;
  GradScaler scaler({});
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  ASSERT_OK(RestoreState(scaler, state, "memory"));
  EXPECT_EQ(scaler.skipped_updates(), 7);
  EXPECT_EQ(scaler.scale(), 512.0);
  EXPECT_EQ(*HashState(scaler), *HashState(saved));
}

// A whole gradient carries an overflow to all ranks; of shards, the others see nothing.
TEST(GradScaler, OverflowInTheShardOfOneRank_IsThatOfAll) {
  for (const float gradient : {1.0F, kInf}) {
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
      GradScaler scaler({});
      std::vector<ParameterGroup> groups = {GroupWithGradients({communicator.rank() == 1 ? gradient : 1.0F})};
      groups[0].shard_ranks = &communicator;
      const bool is_finite = scaler.Unscale(groups).item<float>() == 0.0F;
      scaler.Update();
      EXPECT_EQ(is_finite, std::isfinite(gradient)) << "rank " << communicator.rank();
      EXPECT_EQ(scaler.scale() < GradScalerOptions().initial_scale, !is_finite) << "rank " << communicator.rank();
      return absl::OkStatus();
    }));
  }
}

}  // namespace
}  // namespace ssl
