// SPDX-License-Identifier: Apache-2.0
//
// Plans, carried out by the code that kernels run, against the transforms with the same random numbers.
#include "ssl/data/transforms/draw_view_plan.h"

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/transforms/testing/planned_views.h"
#include "ssl/kernels/augment_view.h"
#include "ssl/kernels/team.h"
#include "ssl/kernels/testing/thread_team.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// As one thread for each kernel does it.
std::vector<float> AugmentByOneThread(const PlannedViews& views) {
  std::vector<uint8_t> work(views.work_bytes);
  std::vector<float> result(views.expected.size());
  for (const ViewPlan& plan : views.plans) {
    RunResizePass(FirstPass(plan, views.images.data(), work.data() + plan.work_begin), 0, 1);
    ViewAugmenter<OneThread>(OneThread(), plan, work.data() + plan.work_begin)
        .Run(views.normalization, result.data() + plan.result_begin);
  }
  return result;
}

std::vector<float> AugmentByThreads(const PlannedViews& views, int threads) {
  std::vector<uint8_t> work(views.work_bytes);
  std::vector<float> result(views.expected.size());
  RunTeams(1, threads, [&](const ThreadTeam& team, const ThreadTeams&) {
    for (const ViewPlan& plan : views.plans) {
      RunResizePass(FirstPass(plan, views.images.data(), work.data() + plan.work_begin), team.index(), team.size());
      team.Wait();
      ViewAugmenter<ThreadTeam>(team, plan, work.data() + plan.work_begin)
          .Run(views.normalization, result.data() + plan.result_begin);
    }
  });
  return result;
}

int CountDifferences(const std::vector<float>& a, const std::vector<float>& b) {
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST(DrawViewPlan, Views_AreThoseOfTheTransformsInEveryBit) {
  ASSERT_OK_AND_ASSIGN(const PlannedViews views, PlanViews(ImagesToPlan(), 12));
  const std::vector<float> actual = AugmentByOneThread(views);
  for (size_t i = 0; i < views.plans.size(); ++i) {
    const ViewPlan& plan = views.plans[i];
    const int64_t begin = plan.result_begin, end = begin + 3 * plan.num_pixels();
    const std::vector<float> view(actual.begin() + begin, actual.begin() + end);
    const std::vector<float> expected(views.expected.begin() + begin, views.expected.begin() + end);
    EXPECT_EQ(CountDifferences(view, expected), 0) << "view " << i << " with " << plan.num_steps << " steps";
  }
}

// Otherwise the comparison would say little.
TEST(DrawViewPlan, Plans_HaveEveryKindOfStep) {
  ASSERT_OK_AND_ASSIGN(const PlannedViews views, PlanViews(ImagesToPlan(), 12));
  std::set<PixelStepKind> kinds;
  int flipped = 0, rows_first = 0, wide_blurs = 0;
  for (const ViewPlan& plan : views.plans) {
    flipped += plan.flipped;
    rows_first += plan.rows_first;
    for (int i = 0; i < plan.num_steps; ++i) {
      kinds.insert(plan.steps[i].kind);
      wide_blurs += plan.steps[i].kind == PixelStepKind::kBlur && plan.steps[i].amount > 2;
    }
  }
  EXPECT_EQ(kinds.size(), 7u);
  EXPECT_GT(flipped, 0);
  EXPECT_GT(rows_first, 0);
  EXPECT_GT(wide_blurs, 0);
}

TEST(DrawViewPlan, SeveralThreads_MakeTheSameViews) {
  ASSERT_OK_AND_ASSIGN(const PlannedViews views, PlanViews(ImagesToPlan(), 1));
  EXPECT_EQ(AugmentByThreads(views, 3), views.expected);
}

TEST(DrawViewPlan, MoreStepsThanAPlanHolds_AreRefused) {
  ViewPlan plan;
  CounterRandom random(1, 2, 3, 4, 5);
  for (int i = 0; i < ViewPlan::kMostSteps; ++i) ASSERT_OK(DrawGreyPlan(&random, 1.0, &plan));
  EXPECT_THAT(DrawGreyPlan(&random, 1.0, &plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 8 steps")));
}

}  // namespace
}  // namespace ssl
