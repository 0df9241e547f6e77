// SPDX-License-Identifier: Apache-2.0
//
// The rules of the programs whose settings we run, as tables of what is due.
#include "ssl/core/cadence.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int64_t> Due(const Cadence& cadence, int64_t total) { return cadence.DueIn(1, total, total); }

Cadence UnitedPerception(int64_t frequency, int64_t start) {
  return {Cadence::Unit::kEpoch, frequency, start, /*anchor=*/0, /*at_end=*/true};
}

TEST(CadenceTest, UnitedPerception_GridIsAnchoredAtZeroNotAtItsStart) {
  EXPECT_THAT(Due(UnitedPerception(2, 5), 11), ElementsAre(6, 8, 10, 11));
  EXPECT_THAT(Due(UnitedPerception(2, 5), 10), ElementsAre(6, 8, 10));
  EXPECT_THAT(Due(UnitedPerception(1, 1), 3), ElementsAre(1, 2, 3));
}

TEST(CadenceTest, UnitedPerception_NineteenNineteenOne) {
  EXPECT_THAT(Due(UnitedPerception(/*test_freq=*/19, 1), 19), ElementsAre(19));
  EXPECT_THAT(Due(UnitedPerception(/*save_freq=*/1, 1), 19), SizeIs(19));
  EXPECT_THAT(Due(UnitedPerception(/*test_freq=*/20, 1), 19), ElementsAre(19)) << "more than there are: at the end";
}

TEST(CadenceTest, Detectron2_EvalHookCalls) {
  const auto calls = [](int64_t updates, int64_t period) {
    return Due({Cadence::Unit::kUpdate, period, 1, 0, true}, updates).size();
  };
  EXPECT_EQ(calls(30, 15), 2);
  EXPECT_EQ(calls(31, 15), 3);
  EXPECT_EQ(calls(20, 0), 1);
}

TEST(CadenceTest, Detectron2_PeriodicCheckpointerSavesAtTheEndOfEachPeriod) {
  // Indices 9, 19, ..., 99 there are counts here.
  EXPECT_THAT(Due({Cadence::Unit::kUpdate, 10, 1, 0, true}, 100), ElementsAre(10, 20, 30, 40, 50, 60, 70, 80, 90, 100));
}

TEST(CadenceTest, Vissl_CountsFromTheFirstEpoch) {
  const Cadence cadence{Cadence::Unit::kEpoch, 3, 1, /*anchor=*/1, /*at_end=*/true};
  EXPECT_THAT(Due(cadence, 6), ElementsAre(1, 4, 6));
}

TEST(CadenceTest, StartAsAnchor_BeginsThere) {
  EXPECT_THAT(Due({Cadence::Unit::kEpoch, 2, 5, 5, false}, 10), ElementsAre(5, 7, 9));
}

TEST(CadenceTest, NoFrequency_IsTheEndOrNever) {
  EXPECT_THAT(Due({Cadence::Unit::kEpoch, -1, 1, 0, true}, 4), ElementsAre(4));
  EXPECT_THAT(Due({Cadence::Unit::kEpoch, 0, 1, 0, false}, 4), IsEmpty());
  EXPECT_THAT(Due({Cadence::Unit::kEpoch, 1, 5, 0, false}, 4), IsEmpty());
}

}  // namespace
}  // namespace ssl
