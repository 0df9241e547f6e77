// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_horizontal_flip.h"

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

int CountFlips(const Transform& transform, int samples) {
  int flips = 0;
  for (int i = 0; i < samples; ++i) {
    Sample sample = OneImage(2, 2, 1);
    sample.ResetViews(2);
    EXPECT_OK(ApplyTransform(transform, &sample, i));
    flips += sample.view(0).flipped + sample.view(1).flipped;
  }
  return flips;
}

TEST(RandomHorizontalFlip, Default_FlipsHalfOfTheViews) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: RandomHorizontalFlip"));
  const double standard_error = std::sqrt(10000 * 0.25);
  EXPECT_NEAR(CountFlips(*transform, 5000), 5000, 5 * standard_error);
}

TEST(RandomHorizontalFlip, ProbabilityZeroAndOne_AreCertain) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> never, MakeTransform("{name: RandomHorizontalFlip, p: 0}"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: RandomHorizontalFlip, p: 1}"));
  EXPECT_EQ(CountFlips(*never, 100), 0);
  EXPECT_EQ(CountFlips(*always, 100), 200);
}

TEST(RandomHorizontalFlip, FlippedTwice_IsPlainAgain) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: RandomHorizontalFlip, p: 1}"));
  Sample sample = OneImage(2, 2, 1);
  ASSERT_OK(ApplyTransform(*always, &sample));
  ASSERT_OK(ApplyTransform(*always, &sample));
  EXPECT_FALSE(sample.view(0).flipped);
}

TEST(RandomHorizontalFlip, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(MakeTransform("{name: RandomHorizontalFlip, p: 1.5}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:1: TRANSFORMS.RandomHorizontalFlip.p is '1.5'")));
  EXPECT_THAT(MakeTransform("{name: RandomHorizontalFlip, prob: 0.5}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prob")));
}

}  // namespace
}  // namespace ssl
