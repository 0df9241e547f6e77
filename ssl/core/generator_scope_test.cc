// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/generator_scope.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/default_generators.h"
#include "ssl/testing/standin_device.h"

namespace ssl {
namespace {

at::Tensor DrawAfter(const std::function<void()>& seed) {
  seed();
  return at::rand({4});
}

TEST(SeedForBuildingTest, RepeatsTheSequence) {
  const auto seed = [] { SeedForBuilding(5, 0); };
  EXPECT_TRUE(at::equal(DrawAfter(seed), DrawAfter(seed)));
}

TEST(SeedForBuildingTest, RanksAndSeedsDrawDifferentNumbers) {
  const at::Tensor first = DrawAfter([] { SeedForBuilding(5, 0); });
  EXPECT_FALSE(at::equal(DrawAfter([] { SeedForBuilding(5, 1); }), first));
  EXPECT_FALSE(at::equal(DrawAfter([] { SeedForBuilding(7, 0); }), first));
}

TEST(SeedForBatchTest, EachAddressHasItsOwnNumbers_WheneverTheyAreDrawn) {
  const std::vector<std::function<void()>> seeds = {[] { SeedForBatch(5, 0, 0, 0); }, [] { SeedForBatch(6, 0, 0, 0); },
                                                    [] { SeedForBatch(5, 1, 0, 0); }, [] { SeedForBatch(5, 0, 1, 0); },
                                                    [] { SeedForBatch(5, 0, 0, 1); }};
  std::vector<at::Tensor> drawn;
  for (const auto& seed : seeds) drawn.push_back(DrawAfter(seed));
  for (size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_TRUE(at::equal(DrawAfter(seeds[i]), drawn[i])) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(at::equal(drawn[i], drawn[j])) << i << " and " << j;
  }
}

TEST(GeneratorScopeTest, TheHostDrawsOnAsIfNothingHadBeen) {
  SeedForBuilding(1, 0);
  at::rand({3});
  const at::Tensor expected = at::rand({4});

  SeedForBuilding(1, 0);
  at::rand({3});
  {
    const GeneratorScope scope;
    SeedForBatch(9, 0, 3, 4);
    at::rand({100});
  }
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(GeneratorScopeTest, ANormalNumberInReserve_IsGivenBackToo) {
  // Normal numbers come in pairs; the second of a pair waits in the generator.
  SeedForBuilding(1, 0);
  at::randn({1});
  const at::Tensor expected = at::randn({1});

  SeedForBuilding(1, 0);
  at::randn({1});
  {
    const GeneratorScope scope;
    at::randn({2});
  }
  EXPECT_TRUE(at::equal(at::randn({1}), expected));
}

// Last: the process has an accelerator from then on.
TEST(GeneratorScopeTest, TheAcceleratorDrawsTheSameNumbers_AndIsGivenBack) {
  const at::Tensor of_cpu = DrawAfter([] { SeedForBatch(5, 0, 1, 2); });
  const at::Tensor state_of_cpu = GeneratorState();
  StandinDevice::Install();
  const auto draw = [] { return at::rand({4}, StandinDevice::device()).to(at::kCPU); };
  SeedForBatch(5, 0, 1, 2);
  EXPECT_TRUE(at::equal(draw(), of_cpu));
  const at::Tensor expected = draw();

  SeedForBatch(5, 0, 1, 2);
  draw();
  const at::Tensor state = GeneratorState();
  {
    const GeneratorScope scope;
    SeedForBatch(9, 0, 3, 4);
    draw();
  }
  EXPECT_TRUE(at::equal(draw(), expected));
  {
    const GeneratorScope scope(state);
    EXPECT_TRUE(at::equal(draw(), expected));
  }
  // Of the time before: that of the accelerator stays as it is.
  const GeneratorScope scope(state_of_cpu);
  EXPECT_EQ(GeneratorState().numel(), 2 * state_of_cpu.numel());
}

}  // namespace
}  // namespace ssl
