// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/rand_augment.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

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

std::string Bytes(const Image& image) {
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

constexpr int kSamples = 10000;

// Every channel has values from 0 to 255, so that AutoContrast changes nothing, and too few pixels for Equalize.
Sample FullRange() {
  Sample sample = OneImage(9, 8, 3);
  uint8_t* pixels = sample.view(0).image.MutablePixels();
  std::fill_n(pixels, 3, 0);
  std::fill_n(pixels + 3, 3, 255);
  return sample;
}

// How many of the samples the transform leaves as they are.
int CountUnchanged(const std::string& parameters) {
  const std::unique_ptr<Transform> transform =
      MakeTransform(absl::StrCat("{name: RandAugment", parameters, "}")).value();
  int unchanged = 0;
  for (int i = 0; i < kSamples; ++i) {
    Sample sample = FullRange();
    EXPECT_OK(ApplyTransform(*transform, &sample, i));
    unchanged += Bytes(sample.view(0).image) == Bytes(FullRange().view(0).image) ? 1 : 0;
  }
  return unchanged;
}

TEST(RandAugment, EachLayerActsWithProbabilityOneHalf) {
  // At magnitude 10, Solarize (from 256 on) changes nothing either: 3 of 15. The bounds are five standard deviations.
  const double keeps = 0.5 + 0.5 * 3 / 15;
  EXPECT_NEAR(CountUnchanged(", num_layers: 1"), keeps * kSamples, 245);
  // Two layers may also undo each other, as Invert does: at most (1 - keeps) / 15 of the rest.
  const double undone = (1 - keeps) / 15 * (1 - keeps);
  EXPECT_NEAR(CountUnchanged(""), (keeps * keeps + undone / 2) * kSamples, 240 + undone / 2 * kSamples);
}

TEST(RandAugment, IncreasingSeverity_ChangesNothingAtMagnitudeZero) {
  // What still acts: Invert, and PosterizeIncreasing, which keeps 4 bits.
  const double keeps = 0.5 + 0.5 * 13 / 15;
  EXPECT_NEAR(CountUnchanged(", num_layers: 1, magnitude: 0, increasing_severity: true"), keeps * kSamples, 125);
}

TEST(RandAugment, WeightsLeaveOutInvertAndPosterize) {
  const std::unique_ptr<Transform> weighted =
      MakeTransform("{name: RandAugment, num_layers: 13, weight_choice: 0, magnitude: 0}").value();
  const std::unique_ptr<Transform> alike = MakeTransform("{name: RandAugment, num_layers: 13, magnitude: 0}").value();
  int black = 0;
  for (int i = 0; i < 200; ++i) {
    Sample sample = OneImage(9, 8, 3);
    ASSERT_OK(ApplyTransform(*alike, &sample, i));
    black += Bytes(sample.view(0).image) == std::string(9 * 8 * 3, '\0') ? 1 : 0;
    sample = OneImage(9, 8, 3);
    // All 13 are drawn once each; Posterize, which is black at magnitude 0, is none of them.
    ASSERT_OK(ApplyTransform(*weighted, &sample, i));
    EXPECT_NE(Bytes(sample.view(0).image), std::string(9 * 8 * 3, '\0'));
  }
  EXPECT_GT(black, 5);
}

TEST(RandAugment, ViewsAndSamplesDiffer_TheSameSampleDoesNot) {
  const std::unique_ptr<Transform> transform = MakeTransform("{name: RandAugment, num_layers: 4}").value();
  std::set<std::string> images;
  for (int i = 0; i < 50; ++i) {
    Sample sample = OneImage(9, 8, 1);
    Sample again = OneImage(9, 8, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    ASSERT_OK(ApplyTransform(*transform, &again, i));
    EXPECT_EQ(Bytes(sample.view(0).image), Bytes(again.view(0).image));
    images.insert(Bytes(sample.view(0).image));
  }
  EXPECT_GT(images.size(), 30u);
}

TEST(RandAugment, WrongParameters_NameKeyAndValue) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: RandAugment, magnitude: 11}"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.RandAugment.magnitude is '11'")));
  EXPECT_THAT(MakeTransform("{name: RandAugment, weight_choice: 1}"),
              StatusIs(invalid, HasSubstr("TRANSFORMS.RandAugment.weight_choice is '1', expected 0 or no such key")));
  EXPECT_THAT(MakeTransform("{name: RandAugment, weight_choice: 0, num_layers: 14}"),
              StatusIs(invalid, HasSubstr("TRANSFORMS.RandAugment.num_layers is 14, expected at most 13")));
}

TEST(RandAugment, AfterToTensor_IsAnError) {
  const std::unique_ptr<Transform> to_tensor = MakeTransform("name: ToTensor").value();
  const std::unique_ptr<Transform> transform = MakeTransform("name: RandAugment").value();
  Sample sample = OneImage(2, 2, 1);
  ASSERT_OK(ApplyTransform(*to_tensor, &sample));
  EXPECT_THAT(ApplyTransform(*transform, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected before it")));
}

}  // namespace
}  // namespace ssl
