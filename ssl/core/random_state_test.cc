// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/random_state.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

std::vector<NamedTensor> Copy(std::vector<NamedTensor> state) {
  for (NamedTensor& entry : state) entry.tensor = entry.tensor.clone();
  return state;
}

TEST(RandomStateTest, Seed_RepeatsTheSequence) {
  RandomState::Seed(5, 0);
  const at::Tensor first = at::rand({4});
  RandomState::Seed(5, 0);
  EXPECT_TRUE(at::equal(at::rand({4}), first));
}

TEST(RandomStateTest, RanksDrawDifferentNumbers) {
  RandomState::Seed(5, 0);
  const at::Tensor first = at::rand({4});
  RandomState::Seed(5, 1);
  EXPECT_FALSE(at::equal(at::rand({4}), first));
}

TEST(RandomStateTest, Restore_GoesOnWhereTheStateWasSaved) {
  RandomState random;
  RandomState::Seed(5, 0);
  at::rand({3});
  const std::vector<NamedTensor> saved = Copy(*CollectState(random));
  const at::Tensor expected = at::rand({4});
  at::rand({9});

  ASSERT_OK(RestoreState(random, saved, "test"));

  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(RandomStateTest, Collecting_DrawsNothing) {
  RandomState random;
  RandomState::Seed(5, 0);
  const at::Tensor first = at::rand({4});
  RandomState::Seed(5, 0);
  ASSERT_OK(CollectState(random));
  EXPECT_TRUE(at::equal(at::rand({4}), first));
}

}  // namespace
}  // namespace ssl
