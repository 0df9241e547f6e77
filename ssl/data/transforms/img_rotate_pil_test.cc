// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_rotate_pil.h"

#include <array>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/affine.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::string Bytes(const Image& image) {
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

TEST(ImgRotatePil, LabelIsTheAngle_AllEquallyOften) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgRotatePil"));
  EXPECT_EQ(transform->num_label_classes(), 4);
  std::array<int, 4> counts = {};
  for (int i = 0; i < 4000; ++i) {
    Sample sample = OneImage(6, 5, 3);
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    ASSERT_GE(sample.label, 0);
    ASSERT_LT(sample.label, 4);
    Image expected;
    RotateImage(OneImage(6, 5, 3).view(0).image, 90.0 * sample.label, AffineSampling::kNearest, 0, &expected);
    ASSERT_EQ(Bytes(sample.view(0).image), Bytes(expected));
    ++counts[sample.label];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 137);  // five standard deviations
}

TEST(ImgRotatePil, SevenAngles_AreThoseOfLinspace) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgRotatePil, num_angles: 7}"));
  // torch.linspace(0, 360, 8)[:-1].tolist()
  const double degrees[] = {0.0,
                            51.42856979370117,
                            102.85713958740234,
                            154.28570556640625,
                            205.71429443359375,
                            257.1428527832031,
                            308.5714416503906};
  for (int i = 0; i < 50; ++i) {
    Sample sample = OneImage(31, 40, 1);
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    Image expected;
    RotateImage(OneImage(31, 40, 1).view(0).image, degrees[sample.label], AffineSampling::kNearest, 0, &expected);
    EXPECT_EQ(Bytes(sample.view(0).image), Bytes(expected)) << sample.label;
  }
}

TEST(ImgRotatePil, LabelsOfTheDataSet_AreReplaced) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgRotatePil, num_angles: 1}"));
  const int64_t row[] = {0, 1};
  Sample sample = OneImage(3, 3, 1);
  sample.label = 9;
  sample.label_row = row;
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_EQ(sample.label, 0);
  EXPECT_TRUE(sample.label_row.empty());
}

TEST(ImgRotatePil, NotedMirroring_IsCarriedOutFirst) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgRotatePil, num_angles: 1}"));
  Sample sample = OneImage(1, 2, 1, 10);
  sample.view(0).flipped = true;
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_FALSE(sample.view(0).flipped);
  EXPECT_EQ(Bytes(sample.view(0).image), "\x11\x0a");
}

TEST(ImgRotatePil, WrongUse_NamesTheReason) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: ImgRotatePil, num_rotations_per_img: 2}"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.ImgRotatePil.num_rotations_per_img is '2'")));
  EXPECT_THAT(MakeTransform("{name: ImgRotatePil, num_angles: 0}"), StatusIs(invalid, HasSubstr("num_angles is '0'")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgRotatePil"));
  Sample sample;
  sample.ResetViews(2);
  EXPECT_THAT(ApplyTransform(*transform, &sample), StatusIs(invalid, HasSubstr("gets 2 views; expected 1")));
}

}  // namespace
}  // namespace ssl
