// SPDX-License-Identifier: Apache-2.0
//
// All 80 combinations that VISSL's own code was run on are in tests/golden; here, the rules one by one.
#include "ssl/core/phases_builder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "T" for a train phase, "e" for a test phase.
std::string Picture(const PhasesBuilder& builder) {
  std::string picture;
  for (const Phase& phase : builder.Build()) picture += phase.train ? 'T' : 'e';
  return picture;
}

TEST(PhasesBuilderTest, WithoutTesting_TrainsOnly) { EXPECT_EQ(Picture({3, 1, false, false}), "TTT"); }

TEST(PhasesBuilderTest, TestOnly_HasOneTestPhasePerEpoch) { EXPECT_EQ(Picture({3, 1, true, true}), "eee"); }

TEST(PhasesBuilderTest, TestFollowsMultiplesAndTheLast) { EXPECT_EQ(Picture({5, 3, true, false}), "TeTTTeTe"); }

TEST(PhasesBuilderTest, Splits_AreTestThenTrain) {
  EXPECT_THAT((PhasesBuilder{1, 1, true, false}).AvailableSplits(), ElementsAre("TEST", "TRAIN"));
  EXPECT_THAT((PhasesBuilder{1, 1, false, true}).AvailableSplits(), IsEmpty());
}

}  // namespace
}  // namespace ssl
