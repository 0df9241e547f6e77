// SPDX-License-Identifier: Apache-2.0
//
// With a real trunk and real memory: what is forecast, and what is then measured.
#include "ssl/hooks/memory_planner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/models/layers.h"
#include "ssl/models/ssl_model.h"
#include "ssl/models/trunks/resnet.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kWarmup = 2;

class MemoryPlannerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { InstallTensorMemory(); }

  MemoryPlannerTest() {
    ResNetOptions options;
    options.depth = 18;
    options.width_multiplier = 0.25;
    absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeResNet(options, /*seed=*/0);
    EXPECT_OK(trunk);
    model_ = std::make_unique<SslModel>(*std::move(trunk), std::vector<std::unique_ptr<Head>>(), SslModelOptions());
  }

  static std::vector<BlockRange> EachBlock(size_t blocks) {
    std::vector<BlockRange> each;
    for (size_t i = 0; i < blocks; ++i) each.push_back({i, i + 1});
    return each;
  }

  static at::Tensor Images(int64_t count, int64_t size) {
    return at::sin(at::arange(count * 3 * size * size, at::kFloat) * 0.11)
        .view({count, 3, size, size})
        .contiguous(at::MemoryFormat::ChannelsLast);
  }

  // Forward and backward over two resolutions; returns the most that tensors took meanwhile.
  int64_t Step(int64_t images = 8) {
    const std::vector<at::Tensor> views = {Images(images, 128), Images(2 * images, 64)};
    for (NamedParameter& parameter : model_->Parameters()) parameter.value.mutable_grad() = at::Tensor();
    int64_t most = GetTensorMemory().in_use;
    ResetTensorMemoryPeak();
    const at::Tensor loss = model_->Forward(views)[0].pow(2).mean();
    most = std::max(most, GetTensorMemory().peak);
    loss.backward();
    return std::max(most, GetTensorMemory().peak);
  }

  // Uses `planner` until it plans, and returns the most that a planned step took.
  int64_t PlannedStep(MemoryPlanner* planner) {
    model_->SetRecomputePolicy(planner);
    for (int64_t i = 0; i < kWarmup; ++i) Step();
    const int64_t peak = Step();
    EXPECT_FALSE(planner->warming_up());
    model_->SetRecomputePolicy(nullptr);
    return peak;
  }

  MemoryPlanner Planner(int64_t max_bytes, RecomputeStrategy strategy) {
    const std::vector<std::string> names = model_->block_names();
    return MemoryPlanner(names, EachBlock(names.size()), {kWarmup, max_bytes, strategy});
  }

  std::unique_ptr<SslModel> model_;
};

TEST_F(MemoryPlannerTest, Forecast_IsWhatIsMeasured) {
  const int64_t plain = Step();
  for (const double share : {2.0, 0.8, 0.65}) {
    SCOPED_TRACE(share);
    const auto limit = static_cast<int64_t>(share * static_cast<double>(plain));
    MemoryPlanner planner = Planner(limit, RecomputeStrategy::kOptimal);
    const auto peak = static_cast<double>(PlannedStep(&planner));
    const MemoryForecast& forecast = planner.forecast();
    EXPECT_NEAR(static_cast<double>(forecast.peak_bytes) / peak, 1.0, 0.1);
    EXPECT_NEAR(static_cast<double>(forecast.peak_without_bytes) / static_cast<double>(plain), 1.0, 0.1);
    EXPECT_LE(peak, static_cast<double>(limit));
    EXPECT_THAT(forecast.recomputed, share > 1.0 ? ::testing::Matcher<std::vector<std::string>>(IsEmpty())
                                                 : ::testing::Matcher<std::vector<std::string>>(Not(IsEmpty())));
  }
}

TEST_F(MemoryPlannerTest, EveryStrategy_KeepsTheLimit) {
  const auto limit = static_cast<int64_t>(0.75 * static_cast<double>(Step()));
  for (const RecomputeStrategy strategy :
       {RecomputeStrategy::kGreedy, RecomputeStrategy::kMemoryTime, RecomputeStrategy::kOptimal}) {
    SCOPED_TRACE(static_cast<int>(strategy));
    MemoryPlanner planner = Planner(limit, strategy);
    EXPECT_LE(PlannedStep(&planner), limit);
  }
}

TEST_F(MemoryPlannerTest, LimitOutOfReach_RecomputesEverything) {
  MemoryPlanner planner = Planner(1, RecomputeStrategy::kOptimal);
  PlannedStep(&planner);
  EXPECT_THAT(planner.forecast().recomputed, SizeIs(2 * model_->block_names().size()));
}

TEST_F(MemoryPlannerTest, OtherSizes_ArePlannedAnew) {
  // Four images fit by a margin: they are counted as the smallest that was measured.
  const auto limit = static_cast<int64_t>(0.88 * static_cast<double>(Step()));
  MemoryPlanner planner = Planner(limit, RecomputeStrategy::kOptimal);
  PlannedStep(&planner);
  const size_t at_measured_size = planner.forecast().recomputed.size();
  model_->SetRecomputePolicy(&planner);
  const int64_t larger = Step(/*images=*/9);
  EXPECT_LE(larger, limit);
  EXPECT_GT(planner.forecast().recomputed.size(), at_measured_size);
  Step(/*images=*/4);
  EXPECT_THAT(planner.forecast().recomputed, IsEmpty());
}

TEST_F(MemoryPlannerTest, PartsThatAreNoCandidates_AreKept) {
  const std::vector<std::string> names = model_->block_names();
  MemoryPlanner planner(names, {{3, 5}}, {kWarmup, 1, RecomputeStrategy::kOptimal});
  PlannedStep(&planner);
  EXPECT_THAT(planner.forecast().recomputed,
              ::testing::ElementsAre("res2.1 - res3.0 (8x128x128)", "res2.1 - res3.0 (16x64x64)"));
}

// Blocks without a gradient are never run again: measuring ends all the same.
TEST_F(MemoryPlannerTest, FrozenBlocks_DoNotHoldUpTheWarmUp) {
  ASSERT_OK(model_->Freeze({"trunk.conv1.weight", "trunk.bn1.weight", "trunk.bn1.bias"}));
  const auto limit = static_cast<int64_t>(0.75 * static_cast<double>(Step()));
  MemoryPlanner planner = Planner(limit, RecomputeStrategy::kOptimal);
  EXPECT_LE(PlannedStep(&planner), limit);
  EXPECT_THAT(planner.forecast().recomputed, Not(IsEmpty()));
}

// As a process that resumes goes on from what the one before it has measured.
TEST_F(MemoryPlannerTest, AnotherPlanner_GoesOnFromMeasurements) {
  const auto limit = static_cast<int64_t>(0.75 * static_cast<double>(Step()));
  MemoryPlanner first = Planner(limit, RecomputeStrategy::kMemoryTime);
  PlannedStep(&first);
  MemoryPlanner second = Planner(limit, RecomputeStrategy::kMemoryTime);
  ASSERT_TRUE(second.GoOnFrom(first.measurements()));
  EXPECT_FALSE(second.warming_up());
  model_->SetRecomputePolicy(&second);
  Step();
  EXPECT_EQ(second.forecast().recomputed, first.forecast().recomputed);
  EXPECT_THAT(second.forecast().recomputed, Not(IsEmpty()));
  EXPECT_EQ(second.forecast().recompute_seconds, first.forecast().recompute_seconds);
  EXPECT_EQ(second.forecast().peak_without_bytes, first.forecast().peak_without_bytes);
  EXPECT_EQ(second.measurements().seconds, first.measurements().seconds);
  EXPECT_EQ(second.measurements().sizes, first.measurements().sizes);
}

// The memory in use when a step begins varies: the plan does not change as long as it fits.
TEST_F(MemoryPlannerTest, MemoryThatBecomesFree_ChangesNoPlan_AlsoInAnotherPlanner) {
  const int64_t limit = Step();
  MemoryPlanner first = Planner(limit, RecomputeStrategy::kOptimal);
  at::Tensor others = at::ones({limit / 10 / 4}, at::kFloat);
  PlannedStep(&first);
  const std::vector<std::string> recomputed = first.forecast().recomputed;
  EXPECT_THAT(recomputed, Not(IsEmpty()));
  others.reset();
  MemoryPlanner second = Planner(limit, RecomputeStrategy::kOptimal);
  ASSERT_TRUE(second.GoOnFrom(first.measurements()));
  MemoryPlanner other_limit = Planner(limit * 2, RecomputeStrategy::kOptimal);
  ASSERT_TRUE(other_limit.GoOnFrom(first.measurements()));
  for (MemoryPlanner* planner : {&first, &second, &other_limit}) {
    model_->SetRecomputePolicy(planner);
    Step();
  }
  EXPECT_EQ(first.forecast().recomputed, recomputed);
  EXPECT_EQ(second.forecast().recomputed, recomputed);
  EXPECT_THAT(other_limit.forecast().recomputed, IsEmpty());
}

TEST_F(MemoryPlannerTest, AnotherPlanner_GoesOnWithinTheWarmUp) {
  MemoryPlanner first = Planner(1, RecomputeStrategy::kOptimal);
  model_->SetRecomputePolicy(&first);
  Step();
  MemoryPlanner second = Planner(1, RecomputeStrategy::kOptimal);
  ASSERT_TRUE(second.GoOnFrom(first.measurements()));
  EXPECT_EQ(second.warm_up_left(), kWarmup - 1);
  model_->SetRecomputePolicy(&second);
  Step();
  EXPECT_TRUE(second.warming_up());
  Step();
  EXPECT_FALSE(second.warming_up());
}

// The last pass of the warm-up counts where a checkpoint is saved right behind it.
TEST_F(MemoryPlannerTest, MeasurementsBehindAStep_HoldThatStep) {
  MemoryPlanner planner = Planner(1, RecomputeStrategy::kOptimal);
  model_->SetRecomputePolicy(&planner);
  Step();
  EXPECT_THAT(planner.measurements().seconds, IsEmpty()) << "the first pass of a process is left out";
  Step();
  EXPECT_THAT(planner.measurements().seconds, SizeIs(2 * model_->block_names().size() + 1));
  EXPECT_EQ(planner.measurements().passes, 2);
}

TEST_F(MemoryPlannerTest, MeasurementsOfOtherParts_AreRefused) {
  MemoryPlanner planner = Planner(1, RecomputeStrategy::kOptimal);
  PlannedStep(&planner);
  MemoryPlanner other({"one", "two"}, EachBlock(2), {kWarmup, 1, RecomputeStrategy::kOptimal});
  EXPECT_FALSE(other.GoOnFrom(planner.measurements()));
  EXPECT_TRUE(other.warming_up());
  MemoryMeasurements cut = planner.measurements();
  cut.sizes.pop_back();
  EXPECT_FALSE(planner.GoOnFrom(cut));
  cut = planner.measurements();
  cut.plans.pop_back();
  EXPECT_FALSE(planner.GoOnFrom(cut));
}

// A forward pass without a backward, as in a step that fails, is no measurement.
TEST_F(MemoryPlannerTest, PassWithoutBackward_IsNotCounted) {
  MemoryPlanner planner = Planner(1, RecomputeStrategy::kOptimal);
  model_->SetRecomputePolicy(&planner);
  for (int i = 0; i < 5; ++i) model_->Forward({Images(2, 64)});
  EXPECT_TRUE(planner.warming_up());
  Step();
  Step();
  Step();
  EXPECT_FALSE(planner.warming_up());
}

}  // namespace
}  // namespace ssl
