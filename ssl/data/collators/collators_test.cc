// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/collators.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/data/collator.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPath[] = "config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS";

// Checks a sample with square views of these sides.
absl::Status Check(const std::string& name, const std::vector<int>& sides) {
  Sample sample;
  sample.ResetViews(static_cast<int>(sides.size()));
  for (size_t v = 0; v < sides.size(); ++v) {
    sample.view(static_cast<int>(v)).image.Allocate(sides[v], sides[v], 3);
  }
  auto collator = MakeCollator(name, ConfigNode::Map(), kPath);
  if (!collator.ok()) return collator.status();
  return (*collator)->Check(sample);
}

TEST(Collators, Names_AreSorted) {
  EXPECT_THAT(CollatorNames(), ElementsAre("cutmixup_collator", "default_collate", "moco_collator",
                                           "multicrop_collator", "multicrop_mixup_collator", "patch_and_image_collator",
                                           "siamese_collator", "simclr_collator", "targets_one_hot_default_collator"));
}

TEST(Collators, FittingViews_AreAccepted) {
  EXPECT_OK(Check("default_collate", {8}));
  EXPECT_OK(Check("moco_collator", {8, 8}));
  EXPECT_OK(Check("multicrop_collator", {8}));
  EXPECT_OK(Check("multicrop_collator", {8, 8, 4, 4}));
  EXPECT_OK(Check("patch_and_image_collator", {8, 4, 4}));
  EXPECT_OK(Check("siamese_collator", {8, 8, 8}));
  EXPECT_OK(Check("simclr_collator", {8, 8}));
  EXPECT_OK(Check("simclr_collator", {8, 8, 8}));
}

TEST(Collators, WrongNumberOfViews_NamesTheCollatorAndBothNumbers) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Check("default_collate", {8, 8}),
              StatusIs(invalid, AllOf(HasSubstr("COLLATE_FUNCTION is default_collate, but the transforms make 2 views"),
                                      HasSubstr("expected 1 view, or multicrop_collator"))));
  EXPECT_THAT(Check("moco_collator", {8}), StatusIs(invalid, HasSubstr("make 1 views; expected 2 views of one size")));
  EXPECT_THAT(Check("moco_collator", {8, 8, 8}), StatusIs(invalid, HasSubstr("make 3 views")));
  EXPECT_THAT(Check("patch_and_image_collator", {8, 4}),
              StatusIs(invalid, HasSubstr("make 2 views; expected an image and 2 or more patches of one size")));
  EXPECT_THAT(Check("siamese_collator", {8}), StatusIs(invalid, HasSubstr("make 1 views; expected 2 or more views")));
  EXPECT_THAT(Check("simclr_collator", {8}), StatusIs(invalid, HasSubstr("expected 2 or more views of one size")));
}

TEST(Collators, UnequalSizes_NameBoth) {
  EXPECT_THAT(Check("simclr_collator", {8, 8, 4}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("simclr_collator, but view 0 is 8 x 8 and view 2 is 4 x 4"),
                             HasSubstr("or multicrop_collator"))));
  EXPECT_THAT(Check("patch_and_image_collator", {8, 4, 4, 8}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("view 1 is 4 x 4 and view 3 is 8 x 8")));
}

TEST(Collators, UnknownName_NamesTheNearest) {
  EXPECT_THAT(Check("multicrop_colator", {8}),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("no collate function is named"),
                                                          HasSubstr("did you mean 'multicrop_collator'?"))));
}

TEST(Collators, Parameters_AreChecked) {
  const ConfigNode unknown = ParseYaml("alpha: 1", "run.yaml", nullptr).value();
  for (const std::string& name : CollatorNames()) {
    EXPECT_THAT(MakeCollator(name, unknown, kPath),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("run.yaml:1: unknown key 'config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS.alpha'")))
        << name;
  }
  const ConfigNode off = ParseYaml("create_multidimensional_tensor: False", "run.yaml", nullptr).value();
  EXPECT_OK(MakeCollator("multicrop_collator", off, kPath));
  const ConfigNode on = ParseYaml("create_multidimensional_tensor: True", "run.yaml", nullptr).value();
  EXPECT_THAT(
      MakeCollator("multicrop_collator", on, kPath),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("run.yaml:1: config.DATA.TRAIN.COLLATE_FUNCTION_PARAMS."
                                                           "create_multidimensional_tensor is True, expected False")));
}

}  // namespace
}  // namespace ssl
