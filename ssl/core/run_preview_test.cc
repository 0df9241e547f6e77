// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_preview.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class PlanningHook : public Hook {
 public:
  PlanningHook(std::string name, std::vector<PlannedAction> plan) : name_(std::move(name)), plan_(std::move(plan)) {}
  absl::string_view name() const override { return name_; }
  HookStage stage() const override { return HookStage::kObserve; }
  std::vector<PlannedAction> Plan() const override { return plan_; }

 private:
  const std::string name_;
  const std::vector<PlannedAction> plan_;
};

constexpr Cadence kEachEpoch{Cadence::Unit::kEpoch, 1, 1, 0, false};

// Four epochs of 10 updates; with tests, each is tested.
RunPreview Preview(const Hook& hook, bool tests = false, int64_t keep_last = 2) {
  std::vector<Phase> phases;
  for (int epoch = 0; epoch < 4; ++epoch) {
    phases.push_back({true});
    if (tests) phases.push_back({false});
  }
  return PreviewRun({&hook}, phases, 10, keep_last);
}

TEST(RunPreview, TimesOfTheFirstAndTheLastEpoch) {
  const PlanningHook hook("logger", {{"writes a line", {Cadence::Unit::kUpdate, 4, 1, 0, true}},
                                     {"measures", {Cadence::Unit::kUpdate, 1, 1, 0, false}},
                                     {"looks", kEachEpoch}});
  const RunPreview preview = Preview(hook);
  EXPECT_THAT(preview.text, HasSubstr("4 epochs of 10 updates, 40 in all; 0 test phases"));
  EXPECT_THAT(preview.text, ContainsRegex("logger +writes a line +at 4, 8 +at 32, 36, 40 +10 times"));
  EXPECT_THAT(preview.text, ContainsRegex("logger +measures +at each of 10 updates +at each of 10 updates +40 times"));
  EXPECT_THAT(preview.text, ContainsRegex("logger +looks +at 10 +at 40 +4 times"));
  EXPECT_THAT(preview.warnings, IsEmpty());
}

TEST(RunPreview, WhatIsDoneAfterTestsAsWell_HasARowForThemWhereThereAreTests) {
  const PlanningHook hook("metrics", {{"reports", kEachEpoch}, {"reports", kEachEpoch, /*in_test_phase=*/true}});
  EXPECT_THAT(Preview(hook).text, Not(HasSubstr(" 0 times")));
  EXPECT_THAT(Preview(hook, /*tests=*/true).text, ContainsRegex("metrics +reports each epoch +at 10, after the test"));
}

TEST(RunPreview, WhatAnotherHookChooses_IsTold) {
  PlannedAction judges{"judges", kEachEpoch, /*in_test_phase=*/false, "best.step"};
  judges.moments = "at each evaluation";
  const RunPreview preview = Preview(PlanningHook("judge", {judges}));
  EXPECT_THAT(preview.text, ContainsRegex("judge +judges +at each evaluation +at each evaluation *\n"));
  EXPECT_THAT(preview.text, HasSubstr("  best.step, and the checkpoint that it names"));
  EXPECT_THAT(preview.warnings, IsEmpty());
}

TEST(RunPreview, HooksWithoutAPlan_ActAtTheirEvents) {
  const PlanningHook hook("ema", {});
  EXPECT_THAT(Preview(hook).text, ContainsRegex("ema +acts whenever its events come"));
}

TEST(RunPreview, WhatNeverHappens_IsAWarning) {
  const PlanningHook hook("rare", {{"empties the cache", {Cadence::Unit::kUpdate, 100, 1, 0, false}},
                                   {"saves", {Cadence::Unit::kEpoch, 1, 9, 0, false}},
                                   {"judges", kEachEpoch, /*in_test_phase=*/true, "best"}});
  EXPECT_THAT(Preview(hook).warnings,
              ElementsAre("hook 'rare' empties the cache never: it is due every 100 updates, and the run has 40",
                          "hook 'rare' saves never: it is due each epoch from 9 on, and the run has 4",
                          "hook 'rare' judges never: the run has no test phase"));
  EXPECT_THAT(Preview(hook).text, Not(HasSubstr("  best\n")));
  EXPECT_THAT(Preview(hook, /*tests=*/true).text,
              AllOf(HasSubstr("  best\n"), ContainsRegex("judges +at 10, after the test +at 40, after the test +4")));
}

TEST(RunPreview, OneThingByTwoRules_HasARowForEachAndIsNeverOnlyWhenBothAre) {
  const Cadence far{Cadence::Unit::kUpdate, 5000, 1, 0, false};
  const Cadence at_end{Cadence::Unit::kEpoch, 0, 1, 0, true};
  const PlanningHook some("eval", {{"evaluates", at_end}, {"evaluates", far}});
  EXPECT_THAT(Preview(some).text, AllOf(ContainsRegex("eval +evaluates at the end +- +at 40 +1 time"),
                                        ContainsRegex("eval +evaluates every 5000 updates +- +- +0 times")));
  EXPECT_THAT(Preview(some).warnings, IsEmpty());
  const PlanningHook none("eval", {{"evaluates", {Cadence::Unit::kEpoch, 9, 1, 0, false}}, {"evaluates", far}});
  EXPECT_THAT(Preview(none).warnings, ElementsAre("hook 'eval' evaluates never: it is due every 9 epochs, and the run "
                                                  "has 4; it is due every 5000 updates, and the run has 40"));
}

TEST(RunPreview, WhatIsDueOnceBehindTheEnd_IsNamedByThatUpdate) {
  const PlanningHook hook("profiler", {{"records", {Cadence::Unit::kUpdate, int64_t{1} << 40, 101, 101, false}}});
  EXPECT_THAT(Preview(hook).warnings,
              ElementsAre("hook 'profiler' records never: it is due at update 101, and the run has 40"));
}

TEST(RunPreview, Files_AreThoseThatStay) {
  const PlanningHook hook("checkpoint", {{"saves", {Cadence::Unit::kUpdate, 15, 1, 0, false}, false, kCheckpointFile},
                                         {"saves", {Cadence::Unit::kEpoch, 2, 1, 1, false}, false, kCheckpointFile},
                                         {"writes", kEachEpoch, false, "metrics.json"}});
  EXPECT_THAT(Preview(hook).text,
              AllOf(HasSubstr("  checkpoints/step_30, checkpoints/step_40 (2 of 4)\n"), HasSubstr("  metrics.json\n")));
  EXPECT_THAT(
      Preview(hook, false, 0).text,
      HasSubstr("  checkpoints/step_10, checkpoints/step_15, checkpoints/step_30, checkpoints/step_40 (4 of 4)\n"));
}

TEST(RunPreview, OtherFilesOfAnIteration_AllStayAndTheEndAddsNone) {
  const PlanningHook hook("feature_vis",
                          {{"draws", {Cadence::Unit::kUpdate, 15, 1, 0, false}, false, "a_<iteration>"}});
  EXPECT_THAT(Preview(hook).text, HasSubstr("  a_15, a_30 (2 of 2)\n"));
}

TEST(RunPreview, TheEnd_IsSavedWhetherAHookDoesOrNot) {
  const PlanningHook never("checkpoint",
                           {{"saves", {Cadence::Unit::kUpdate, 5000, 1, 0, false}, false, kCheckpointFile}});
  EXPECT_THAT(Preview(never).text, AllOf(ContainsRegex("trainer\\) +saves what no hook has saved +- +at 40 +1 time"),
                                         HasSubstr("  checkpoints/step_40 (1 of 1)\n")));
  EXPECT_THAT(Preview(never).warnings, SizeIs(1));
}

TEST(RunPreview, Names_AreThereBesideTheNewest) {
  const PlanningHook hook("best", {{"judges", kEachEpoch, false, "checkpoints/best.step"}});
  EXPECT_THAT(Preview(hook).text,
              HasSubstr("  checkpoints/best.step, and the checkpoint that it names, beside the newest\n"));
}

TEST(RunPreview, OfTestsAlone_SaysSo) {
  EXPECT_EQ(PreviewRun({}, {{false}, {false}}, 0, 2).text, "nothing is trained; 2 test phases\n");
}

}  // namespace
}  // namespace ssl
