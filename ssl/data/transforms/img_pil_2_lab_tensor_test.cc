// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_2_lab_tensor.h"

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

TEST(ImgPil2LabTensor, WhiteAndBlack_AreTheEndsOfLightness) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPil2LabTensor"));
  for (const int level : {0, 255}) {
    Sample sample = OneImage(1, 1, 1, level);
    ASSERT_OK(ApplyTransform(*transform, &sample));
    const View& view = sample.view(0);
    ASSERT_EQ(view.image.channels(), 3);
    EXPECT_FLOAT_EQ(view.table->values[view.image.pixels()[0]][0], level == 0 ? -50.0f : 50.0f);
    for (int c = 1; c < 3; ++c) EXPECT_FLOAT_EQ(view.table->values[view.image.pixels()[c]][c], 0.0f);
  }
}

TEST(ImgPil2LabTensor, Normalize_WorksOnItsFloats) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPil2LabTensor"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> normalize,
                       MakeTransform("{name: Normalize, mean: [10, 1, 2], std: [2, 4, 8]}"));
  Sample sample = OneImage(1, 1, 1, 255);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  ASSERT_OK(ApplyTransform(*normalize, &sample));
  const View& view = sample.view(0);
  const float expected[] = {(50.0f - 10) / 2, -1.0f / 4, -2.0f / 8};
  for (int c = 0; c < 3; ++c) EXPECT_FLOAT_EQ(view.table->values[view.image.pixels()[c]][c], expected[c]);
}

TEST(ImgPil2LabTensor, AfterToTensor_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPil2LabTensor"));
  Sample sample = OneImage(1, 1, 3);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  EXPECT_THAT(ApplyTransform(*transform, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected before it")));
  EXPECT_THAT(MakeTransform("{name: ImgPil2LabTensor, size: 3}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("size")));
}

}  // namespace
}  // namespace ssl
