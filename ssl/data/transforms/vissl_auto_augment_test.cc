// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/vissl_auto_augment.h"

#include <memory>
#include <string>
#include <tuple>

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

constexpr int kSamples = 5000;

std::string Bytes(const Image& image) {
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

std::string AfterPolicy(const Transform& transform, Sample sample, int index) {
  EXPECT_OK(ApplyTransform(transform, &sample, index));
  return Bytes(sample.view(0).image);
}

std::unique_ptr<Transform> MakePolicy(const std::string& name) {
  return MakeTransform(absl::StrCat("{name: VisslAutoAugment, policy_name: ", name, "}")).value();
}

Sample White() { return OneImage(1, 1, 1, 255); }

// How often the white pixel becomes black.
int CountBlack(const std::string& name) {
  const std::unique_ptr<Transform> transform = MakePolicy(name);
  int black = 0;
  for (int i = 0; i < kSamples; ++i) black += AfterPolicy(*transform, White(), i) == std::string(1, '\0') ? 1 : 0;
  return black;
}

// Invert makes it black, and Solarize below magnitude 10; black stays so. Of the three posterizes only that of v0 at
// magnitude 2 does, which leaves no bit. Everything else in the pairs keeps one white pixel, or greys it.
TEST(VisslAutoAugment, White_TurnsBlackAsOftenAsThePairsSay) {
  const double v0r = 0.8 + (1 - 0.6 * 0.4) + 0.4 + 0.6 + 0.2 + 0.8 + 0.6;
  const double v0 = v0r + 0.8;
  const double original = 0.6 + 0.2 + 0.6 + 0.6 + 0.6 + 0.8 + 0.6 + 0.2 + 0.6 + 0.6;
  // Of 25 pairs; the bound is five standard deviations.
  EXPECT_NEAR(CountBlack("v0"), v0 / 25 * kSamples, 141);
  EXPECT_NEAR(CountBlack("v0r"), v0r / 25 * kSamples, 132);
  EXPECT_NEAR(CountBlack("original"), original / 25 * kSamples, 146);
  EXPECT_NEAR(CountBlack("originalr"), original / 25 * kSamples, 146);
}

TEST(VisslAutoAugment, VariantsDifferInPosterizeOnly) {
  for (const auto& [one, other, differing] :
       {std::tuple<const char*, const char*, double>{"v0", "v0r", 2.0}, {"original", "originalr", 4.0}}) {
    const std::unique_ptr<Transform> left = MakePolicy(one);
    const std::unique_ptr<Transform> right = MakePolicy(other);
    int different = 0;
    for (int i = 0; i < kSamples; ++i) {
      const Sample noise = OneImage(7, 6, 3, 3);
      different += AfterPolicy(*left, noise, i) != AfterPolicy(*right, noise, i) ? 1 : 0;
    }
    EXPECT_GT(different, 0) << one;
    EXPECT_LT(different, differing / 25 * kSamples) << one;  // the share of the pairs with a posterize
  }
}

TEST(VisslAutoAugment, UnknownPolicy_IsAnErrorWithTheNames) {
  EXPECT_THAT(MakeTransform("{name: VisslAutoAugment, policy_name: v1}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(HasSubstr("run.yaml:1: TRANSFORMS.VisslAutoAugment.policy_name is 'v1'"),
                                        HasSubstr("originalr"))));
}

}  // namespace
}  // namespace ssl
