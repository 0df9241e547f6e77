// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_erasing.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// A view after ToTensor.
Sample Floats(int height, int width, int channels = 3) {
  static const auto* const to_tensor = MakeTransform("name: ToTensor").value().release();
  Sample sample = OneImage(height, width, channels);
  EXPECT_OK(ApplyTransform(*to_tensor, &sample));
  return sample;
}

// The view as the batch has it: [C, H, W].
at::Tensor Written(const Sample& sample, int channels) {
  BatchLayout layout;
  layout.batch_size = 1;
  layout.channels = channels;
  layout = LayoutFor(sample, layout).value();
  BatchBuffer buffer(layout);
  EXPECT_OK(buffer.Write(sample, 0));
  return buffer.Finish(1).views[0][0].clone();
}

TEST(RandomErasing, BoxHasTheDrawnAreaAndRatio) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: RandomErasing, p: 1}"));
  int touches_top = 0;
  int touches_bottom = 0;
  for (int i = 0; i < 2000; ++i) {
    Sample sample = Floats(40, 60);
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    const CropBox& box = sample.view(0).erased.box;
    ASSERT_GT(box.height, 0);
    EXPECT_GE(box.top, 0);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.top + box.height, 40);
    EXPECT_LE(box.left + box.width, 60);
    // Sides are rounded to whole pixels.
    EXPECT_GE((box.height + 0.5) * (box.width + 0.5), 0.02 * 2400);
    EXPECT_LE((box.height - 0.5) * (box.width - 0.5), 0.33 * 2400);
    EXPECT_GE((box.height + 0.5) / (box.width - 0.5), 0.3);
    EXPECT_LE((box.height - 0.5) / (box.width + 0.5), 3.3);
    touches_top += box.top == 0 ? 1 : 0;
    touches_bottom += box.top + box.height == 40 ? 1 : 0;
  }
  EXPECT_GT(touches_top, 20);
  EXPECT_GT(touches_bottom, 20);
}

TEST(RandomErasing, Probability_IsAHalfOrAsGiven) {
  for (const auto& [parameters, expected] : {std::pair<const char*, int>{"", 1000}, {", p: 0", 0}, {", p: 0.1", 200}}) {
    const std::unique_ptr<Transform> transform =
        MakeTransform(absl::StrCat("{name: RandomErasing", parameters, "}")).value();
    int erased = 0;
    for (int i = 0; i < 2000; ++i) {
      Sample sample = Floats(20, 20, 1);
      ASSERT_OK(ApplyTransform(*transform, &sample, i));
      erased += sample.view(0).erased.box.height > 0 ? 1 : 0;
    }
    EXPECT_NEAR(erased, expected, 112) << parameters;
  }
}

TEST(RandomErasing, BatchHasTheValueInTheBoxAndThePixelsAround) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: RandomErasing, p: 1, value: [2, 3, 4]}"));
  for (const bool flipped : {false, true}) {
    for (const int channels : {1, 3}) {
      Sample sample = Floats(12, 10, channels);
      sample.view(0).flipped = flipped;
      const at::Tensor plain = Written(sample, 3);
      ASSERT_OK(ApplyTransform(*transform, &sample, 4));
      const at::Tensor result = Written(sample, 3);
      const CropBox box = sample.view(0).erased.box;
      const int left = flipped ? 10 - box.left - box.width : box.left;
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 12; ++y) {
          for (int x = 0; x < 10; ++x) {
            const bool inside = y >= box.top && y < box.top + box.height && x >= left && x < left + box.width;
            EXPECT_EQ(result[c][y][x].item<float>(), inside ? 2.0f + c : plain[c][y][x].item<float>());
          }
        }
      }
    }
  }
}

TEST(RandomErasing, BoxAsSeen_DoesNotDependOnMirroring) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: RandomErasing, p: 1}"));
  Sample plain = Floats(12, 10);
  Sample mirrored = Floats(12, 10);
  mirrored.view(0).flipped = true;
  ASSERT_OK(ApplyTransform(*transform, &plain, 7));
  ASSERT_OK(ApplyTransform(*transform, &mirrored, 7));
  const CropBox& box = plain.view(0).erased.box;
  EXPECT_EQ(mirrored.view(0).erased.box.left, 10 - box.left - box.width);
  EXPECT_EQ(mirrored.view(0).erased.box.top, box.top);
}

TEST(RandomErasing, OneChannel_TakesTheFirstValue) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: RandomErasing, p: 1, value: [5, 6, 7], scale: [0.3, 0.3]}"));
  Sample sample = Floats(9, 9, 1);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  const CropBox& box = sample.view(0).erased.box;
  EXPECT_EQ(Written(sample, 1)[0][box.top][box.left].item<float>(), 5.0f);
}

TEST(RandomErasing, Noise_IsNormalAndDiffersByChannel) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: RandomErasing, p: 1, value: random, scale: [0.3, 0.33]}"));
  Sample sample = Floats(80, 80);
  ASSERT_OK(ApplyTransform(*transform, &sample));
  const std::vector<float>& values = sample.view(0).erased.values;
  double sum = 0.0, squares = 0.0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(values.size());
  ASSERT_GT(count, 5000);
  EXPECT_NEAR(sum / count, 0.0, 5.0 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1.0, 5.0 * std::sqrt(2.0 / count));
  EXPECT_NE(values[0], values[1]);
}

TEST(RandomErasing, WrongPlace_IsNamed) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("{name: RandomErasing, p: 1}"));
  Sample pixels = OneImage(9, 9, 1);
  EXPECT_THAT(ApplyTransform(*transform, &pixels), StatusIs(invalid, HasSubstr("before ToTensor, expected after it")));
  Sample erased = Floats(20, 20);
  ASSERT_OK(ApplyTransform(*transform, &erased));
  for (const char* late : {"{name: RandomErasing, p: 1}", "{name: Normalize, mean: [0.5], std: [0.5]}",
                           "{name: ImgPatchesFromTensor, patch_jitter: 1}"}) {
    const std::unique_ptr<Transform> next = MakeTransform(late).value();
    EXPECT_THAT(ApplyTransform(*next, &erased), StatusIs(invalid, HasSubstr("after RandomErasing"))) << late;
  }
}

TEST(RandomErasing, WrongParameters_NameKeyAndValue) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  for (const char* value : {"[1, 2]", "black", "{a: 1}"}) {
    EXPECT_THAT(MakeTransform(absl::StrCat("{name: RandomErasing, value: ", value, "}")),
                StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.RandomErasing.value is")))
        << value;
  }
  EXPECT_THAT(MakeTransform("{name: RandomErasing, scale: [0.4, 0.2]}"), StatusIs(invalid, HasSubstr("scale is")));
}

}  // namespace
}  // namespace ssl
