// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/one_hot_encode.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The row lives in the scratch.
class OneHotEncodeTest : public ::testing::Test {
 protected:
  absl::Status Encode(Sample* sample) {
    return transform_->Apply({/*seed=*/1, /*epoch=*/0, /*sample=*/0, /*operation=*/0, scratch_}, sample);
  }

  const std::unique_ptr<Transform> transform_ = MakeTransform("{name: OneHotEncode, num_classes: 3}").value();
  TransformScratch scratch_;
};

TEST_F(OneHotEncodeTest, Label_BecomesARow) {
  Sample sample;
  sample.label = 2;
  ASSERT_OK(Encode(&sample));
  EXPECT_THAT(sample.label_row, ElementsAre(0, 0, 1));
  sample.label = 0;
  sample.label_row = {};
  ASSERT_OK(Encode(&sample));
  EXPECT_THAT(sample.label_row, ElementsAre(1, 0, 0));
}

TEST_F(OneHotEncodeTest, LabelsOfSeveralFiles_AreOnesOfOneRow) {
  const int64_t labels[] = {2, 0};
  Sample sample;
  sample.label_list = labels;
  ASSERT_OK(Encode(&sample));
  EXPECT_THAT(sample.label_row, ElementsAre(1, 0, 1));
  const int64_t same[] = {1, 1};
  sample.SetLabel(-1);
  sample.label_list = same;
  ASSERT_OK(Encode(&sample));
  EXPECT_THAT(sample.label_row, ElementsAre(0, 1, 0));
  const int64_t outside[] = {1, 3};
  sample.SetLabel(-1);
  sample.label_list = outside;
  EXPECT_THAT(Encode(&sample), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("label is 3, expected one")));
}

TEST_F(OneHotEncodeTest, SeveralLabels_KeepTheirOnes) {
  const int64_t labels[] = {1, -1, 1};
  Sample sample;
  sample.label_row = labels;
  ASSERT_OK(Encode(&sample));
  EXPECT_THAT(sample.label_row, ElementsAre(1, 0, 1));
}

TEST_F(OneHotEncodeTest, LabelOutsideTheRow_IsAnErrorWithBothNumbers) {
  for (const int64_t label : {-1, 3}) {
    Sample sample;
    sample.label = label;
    EXPECT_THAT(Encode(&sample), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected one from 0 to 2")));
  }
  const int64_t labels[] = {1, 0};
  Sample sample;
  sample.label_row = labels;
  EXPECT_THAT(Encode(&sample), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for 2 classes, expected")));
}

TEST_F(OneHotEncodeTest, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(MakeTransform("{name: OneHotEncode, num_classes: 0}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:1: TRANSFORMS.OneHotEncode.num_classes is '0'")));
}

}  // namespace
}  // namespace ssl
