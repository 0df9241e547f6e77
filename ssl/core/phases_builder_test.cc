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

// VISSL's rule: after the first of every `every` epochs and the last.
Cadence Vissl(int64_t every) { return {Cadence::Unit::kEpoch, every, 1, 1, true}; }

// "T" for a train phase, "e" for a test phase.
std::string Picture(const PhasesBuilder& builder) {
  std::string picture;
  for (const Phase& phase : builder.Build()) picture += phase.train ? 'T' : 'e';
  return picture;
}

TEST(PhasesBuilderTest, WithoutTesting_TrainsOnly) { EXPECT_EQ(Picture({3, Vissl(1), false, false}), "TTT"); }

TEST(PhasesBuilderTest, TestOnly_HasOneTestPhasePerEpoch) { EXPECT_EQ(Picture({3, Vissl(1), true, true}), "eee"); }

TEST(PhasesBuilderTest, TestFollowsMultiplesAndTheLast) { EXPECT_EQ(Picture({5, Vissl(3), true, false}), "TeTTTeTe"); }

TEST(PhasesBuilderTest, UnitedPerception_TestsOnItsOwnGrid) {
  const auto tests = [](int64_t frequency, int64_t start) {
    return Cadence{Cadence::Unit::kEpoch, frequency, start, 0, true};
  };
  EXPECT_EQ(Picture({11, tests(2, 5), true, false}), "TTTTTTeTTeTTeTe") << "after 6, 8, 10 and the last";
  EXPECT_EQ(Picture({4, tests(9, 1), true, false}), "TTTTe");
}

TEST(PhasesBuilderTest, Splits_AreTestThenTrain) {
  EXPECT_THAT((PhasesBuilder{1, Vissl(1), true, false}).AvailableSplits(), ElementsAre("TEST", "TRAIN"));
  EXPECT_THAT((PhasesBuilder{1, Vissl(1), false, true}).AvailableSplits(), IsEmpty());
}

}  // namespace
}  // namespace ssl
