// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_multi_crop_random_apply.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Views of one grey pixel each.
Sample Views(int count, int value) {
  Sample sample;
  sample.ResetViews(count);
  for (int v = 0; v < count; ++v) *sample.view(v).image.Allocate(1, 1, 1) = static_cast<uint8_t>(value);
  return sample;
}

std::string RandomApply(const std::string& transforms, const std::string& prob) {
  return absl::StrCat("name: ImgPilMultiCropRandomApply\ntransforms: ", transforms, "\nprob: ", prob, "\n");
}

TEST(ImgPilMultiCropRandomApply, EachView_HasItsProbability) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform(RandomApply("[{name: ColorJitter, brightness: [2, 2]}]", "[0.0, 0.2, 1.0]")));
  std::vector<int> applied(3);
  for (int index = 0; index < 2000; ++index) {
    Sample sample = Views(3, 50);
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    for (int v = 0; v < 3; ++v) applied[v] += sample.view(v).image.pixels()[0] == 100;
  }
  EXPECT_EQ(applied[0], 0);
  EXPECT_NEAR(applied[1], 400, 5 * std::sqrt(2000 * 0.16));
  EXPECT_EQ(applied[2], 2000);
}

// The floats of a batch are then not known from the first sample.
TEST(ImgPilMultiCropRandomApply, FloatRule_IsByChance_OfWhatMakesFloats) {
  const auto rule_of = [](const std::string& transforms) {
    return MakeTransform(RandomApply(transforms, "[0.5]")).value()->float_rule();
  };
  EXPECT_EQ(rule_of("[{name: ColorJitter, brightness: 0.4}, {name: RandomHorizontalFlip}]"), FloatRule::kNone);
  for (const char* const transform : {"{name: ToTensor}", "{name: Normalize, mean: [0.5], std: [0.5]}",
                                      "{name: ImgPil2LabTensor}", "{name: RandomErasing}"}) {
    EXPECT_EQ(rule_of(absl::StrCat("[{name: RandomHorizontalFlip}, ", transform, "]")), FloatRule::kByChance);
  }
}

TEST(ImgPilMultiCropRandomApply, Transforms_AreAppliedInOrder) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Transform> transform,
      MakeTransform(RandomApply(
          "[{name: ColorJitter, brightness: [4, 4]}, {name: ColorJitter, brightness: [0.5, 0.5]}]", "[1.0]")));
  Sample sample = Views(1, 100);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(sample.view(0).image.pixels()[0], 127);  // 255, halved
}

TEST(ImgPilMultiCropRandomApply, NestedTransforms_DrawFromStreamsOfTheirOwn) {
  // With one stream for all, the coin of the list, those of the flips and that of the view would always agree.
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Transform> transform,
      MakeTransform(RandomApply("[{name: RandomHorizontalFlip}, {name: RandomVerticalFlip}]", "[0.5, 0.5]")));
  int neither = 0;
  int across = 0;
  int down = 0;
  int both = 0;
  for (int index = 0; index < 4000; ++index) {
    Sample sample;
    sample.ResetViews(2);
    for (int v = 0; v < 2; ++v) {
      uint8_t* pixels = sample.view(v).image.Allocate(2, 1, 1);
      pixels[0] = 0;
      pixels[1] = 1;
    }
    ASSERT_OK(ApplyTransform(*transform, &sample, index));
    const bool flipped = sample.view(1).flipped;
    const bool turned = sample.view(1).image.pixels()[0] == 1;
    neither += !flipped && !turned;
    across += flipped && !turned;
    down += !flipped && turned;
    both += flipped && turned;
  }
  const double bound = 5 * std::sqrt(4000 * 0.125 * 0.875);
  EXPECT_NEAR(neither, 4000 * 0.625, 5 * std::sqrt(4000 * 0.625 * 0.375));
  EXPECT_NEAR(across, 500, bound);
  EXPECT_NEAR(down, 500, bound);
  EXPECT_NEAR(both, 500, bound);
}

TEST(ImgPilMultiCropRandomApply, OtherNumberOfViews_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform(RandomApply("[{name: RandomGrayscale}]", "[0.5, 0.5]")));
  Sample sample = Views(3, 0);
  EXPECT_THAT(
      ApplyTransform(*transform, &sample),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prob has 2 entries, expected 3, the number of views")));
}

TEST(ImgPilMultiCropRandomApply, ErrorOfANestedTransform_NamesIt) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform(RandomApply("[{name: RandomCrop, size: 2}]", "[1]")));
  Sample sample = Views(1, 0);
  EXPECT_THAT(ApplyTransform(*transform, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("RandomCrop: image with padding is 1 x 1")));
}

TEST(ImgPilMultiCropRandomApply, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ImgPilMultiCropRandomApply\nprob: [1]"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.ImgPilMultiCropRandomApply.transforms is null, "
                                          "expected a list of transforms")));
  EXPECT_THAT(MakeTransform(RandomApply("[]", "[1]")), StatusIs(invalid, HasSubstr("transforms is a list")));
  EXPECT_THAT(MakeTransform(RandomApply("[{p: 1}]", "[1]")),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ImgPilMultiCropRandomApply.transforms.0 is a map, "
                                          "expected a map with a name")));
  EXPECT_THAT(MakeTransform(RandomApply("[{name: RandomGrayscale, q: 1}]", "[1]")),
              StatusIs(invalid, HasSubstr("run.yaml:2: unknown key 'TRANSFORMS.RandomGrayscale.q'")));
  EXPECT_THAT(MakeTransform(RandomApply("[{name: RandomGrayscale}]", "[1.5]")), StatusIs(invalid, HasSubstr("prob")));
  EXPECT_THAT(MakeTransform(RandomApply("[{name: ImgReplicatePil}]", "[1]")),
              StatusIs(invalid, HasSubstr("transforms has ImgReplicatePil, expected transforms of single views")));
  EXPECT_THAT(MakeTransform(RandomApply("[{name: RandomGrayscale, indices: [0]}]", "[1]")),
              StatusIs(invalid, HasSubstr("transforms has RandomGrayscale, expected transforms of single views")));
}

}  // namespace
}  // namespace ssl
