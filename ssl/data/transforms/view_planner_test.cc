// SPDX-License-Identifier: Apache-2.0
//
// Which views transforms plan, and in which order they may stand. What the plans make is compared in
// draw_view_plan_test.
#include "ssl/data/transforms/view_planner.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kCrop[] = "{name: RandomResizedCrop, size: 8}";
constexpr char kTwoViews[] = "{name: ImgReplicatePil, num_times: 2}";

absl::StatusOr<std::vector<std::unique_ptr<Transform>>> MakeList(const std::string& entries) {
  const ConfigNode list = ParseYaml(absl::StrCat("[", entries, "]"), "run.yaml", nullptr).value();
  Registries registries;
  EXPECT_OK(RegisterTransforms(&registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  return MakeTransforms(list, "run.yaml:1: TRANSFORMS", {config, registries, *communicator});
}

// Plans of an image after these entries, each as the operation of its place.
absl::Status PlanAll(const std::vector<std::string>& entries, std::vector<ViewPlan>* plans) {
  const Sample sample = OneImage(20, 30, 3);
  TransformScratch scratch;
  plans->assign(1, ViewPlan());
  SSL_ASSIGN_OR_RETURN(const auto transforms, MakeList(absl::StrJoin(entries, ", ")));
  for (size_t i = 0; i < transforms.size(); ++i) {
    const ViewPlanner* const planner = PlannerOf(*transforms[i]);
    if (planner == nullptr) return absl::UnimplementedError(entries[i]);
    const TransformContext context = {7, 1, 5, i, scratch};
    SSL_RETURN_IF_ERROR(planner->Plan(context, sample.view(0).image, plans));
  }
  return absl::OkStatus();
}

TEST(ViewPlanner, Copies_AreCroppedEachByItsOwnDraws) {
  std::vector<ViewPlan> plans;
  ASSERT_OK(PlanAll({kTwoViews, kCrop}, &plans));
  ASSERT_THAT(plans, SizeIs(2));
  EXPECT_EQ(plans[0].rows.out, 8);
  EXPECT_NE(plans[0].source_begin, plans[1].source_begin);
}

TEST(ViewPlanner, MultiCrop_HasAPlanForEachCrop) {
  std::vector<ViewPlan> plans;
  ASSERT_OK(PlanAll({"{name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [1, 2], size_crops: [8, 4], "
                     "crop_scales: [[0.5, 1.0], [0.1, 0.5]]}"},
                    &plans));
  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_EQ(plans[0].columns.out, 8);
  EXPECT_EQ(plans[1].columns.out, 4);
}

TEST(ViewPlanner, StepWithIndices_IsForTheseViews) {
  std::vector<ViewPlan> plans;
  ASSERT_OK(PlanAll({kTwoViews, kCrop, "{name: ImgPilRandomSolarize, p: 1.0, indices: [1]}"}, &plans));
  EXPECT_EQ(plans[0].num_steps, 0);
  EXPECT_EQ(plans[1].num_steps, 1);
}

TEST(ViewPlanner, StepsOfARandomList_AreForTheViewsThatItTakes) {
  std::vector<ViewPlan> plans;
  ASSERT_OK(PlanAll({kTwoViews, kCrop,
                     "{name: ImgPilMultiCropRandomApply, prob: [1.0, 0.0], transforms: [{name: ImgPilRandomSolarize, "
                     "p: 1.0}, {name: RandomGrayscale, p: 1.0}]}"},
                    &plans));
  EXPECT_EQ(plans[0].num_steps, 2);
  EXPECT_EQ(plans[1].num_steps, 0);
}

std::vector<int> MostSteps(const std::string& entry) {
  const auto transforms = MakeList(entry);
  EXPECT_OK(transforms);
  std::vector<int> most_steps(2);
  PlannerOf(*transforms->front())->CountSteps(&most_steps);
  return most_steps;
}

TEST(ViewPlanner, MostSteps_AreCountedByView) {
  EXPECT_THAT(MostSteps(kCrop), ElementsAre(0, 0));
  EXPECT_THAT(MostSteps("{name: RandomHorizontalFlip}"), ElementsAre(0, 0));
  EXPECT_THAT(MostSteps("{name: ImgPilColorDistortion}"), ElementsAre(5, 5));
  EXPECT_THAT(MostSteps("{name: ColorJitter, indices: [1]}"), ElementsAre(0, 4));
  EXPECT_THAT(MostSteps("{name: ImgPilMultiCropRandomApply, prob: [0.0, 0.1], transforms: [{name: ImgPilGaussianBlur}, "
                        "{name: Grayscale}]}"),
              ElementsAre(0, 2));
}

TEST(ViewPlanner, TransformsWithoutPlans_HaveNone) {
  std::vector<ViewPlan> plans;
  for (const char* entry :
       {"{name: CenterCrop, size: 8}", "{name: RandAugment}", "{name: RandomResizedCrop, size: 8, indices: [0]}",
        "{name: ImgPilMultiCropRandomApply, prob: [0.5], transforms: [{name: CenterCrop, size: 8}]}",
        "{name: ImgPilMultiCropRandomApply, prob: [0.5], transforms: [{name: RandomResizedCrop, size: 8}]}"}) {
    EXPECT_THAT(PlanAll({entry}, &plans), StatusIs(absl::StatusCode::kUnimplemented)) << entry;
  }
}

TEST(ViewPlanner, StepBeforeTheCrop_IsRefusedWhateverItDraws) {
  std::vector<ViewPlan> plans;
  for (const char* entry :
       {"{name: RandomHorizontalFlip, p: 0.0}", "{name: ColorJitter}", "{name: ImgPilRandomSolarize, indices: [0]}",
        "{name: ImgPilMultiCropRandomApply, prob: [0.0], transforms: [{name: Grayscale}]}"}) {
    EXPECT_THAT(PlanAll({entry, kCrop}, &plans),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("before a crop")))
        << entry;
  }
}

TEST(ViewPlanner, WhatIsCropped_IsNotCroppedAgainOrCopied) {
  std::vector<ViewPlan> plans;
  for (const char* entry : {kCrop, kTwoViews}) {
    EXPECT_THAT(PlanAll({kCrop, entry}, &plans),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stands behind a crop")))
        << entry;
  }
}

}  // namespace
}  // namespace ssl
