// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/to_tensor.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::string ChannelLimit(const golden::Case& golden_case) {
  const size_t channels = golden_case.Doubles("mean").size();
  return channels == 1 || channels == 3 ? "" : "neither 1 nor 3 channels";
}

TEST(ToTensorGolden, NormalizedBatchIsThatOfTorchvision) {
  const ToTensor to_tensor;
  RunGolden(
      "image", "to_tensor_normalize",
      [&](const golden::Case& golden_case) {
        const std::vector<double> mean = golden_case.Doubles("mean");
        const Normalize normalize(mean, golden_case.Doubles("std", mean.size()));
        Sample sample;
        sample.ResetViews(1);
        sample.view(0).image = ToImage(golden_case.steps[0].Input("image"));
        BatchLayout layout;
        layout.batch_size = 1;

        ASSERT_OK(ApplyTransform(to_tensor, &sample));
        ASSERT_OK(ApplyTransform(normalize, &sample));
        layout.views = {{sample.view(0).image.height(), sample.view(0).image.width()}};
        BatchBuffer buffer(layout);
        ASSERT_OK(buffer.Write(sample, 0));

        const at::Tensor actual = buffer.Finish(1).views[0][0].contiguous();
        const at::Tensor expected = golden_case.steps[0].Expected("image").tensor.to(at::kFloat).contiguous();
        ASSERT_EQ(actual.sizes(), expected.sizes());
        for (int64_t i = 0; i < actual.numel(); ++i) {
          ASSERT_NEAR(actual.const_data_ptr<float>()[i], expected.const_data_ptr<float>()[i], 1e-6) << i;
        }
      },
      &ChannelLimit);
}

// mean and std of 1 or 3 numbers with images of 1 or 3 channels, in batches of 3 channels.
TEST(Normalize, EveryChannelOfTheBatch_HasItsMeanAndStd) {
  const std::vector<std::vector<double>> means = {{0.3}, {0.2, 0.4, 0.6}};
  const std::vector<std::vector<double>> stds = {{0.5}, {0.7, 0.8, 0.9}};
  for (int image_channels : {1, 3}) {
    for (int rule : {0, 1}) {
      Sample sample = OneImage(2, 3, image_channels, 5);
      BatchLayout layout;
      layout.batch_size = 1;
      layout.views = {{2, 3}};
      const ToTensor to_tensor;
      ASSERT_OK(ApplyTransform(to_tensor, &sample));
      const Normalize normalize(means[rule], stds[rule]);
      ASSERT_OK(ApplyTransform(normalize, &sample));
      BatchBuffer buffer(layout);
      ASSERT_OK(buffer.Write(sample, 0));

      const at::Tensor actual = buffer.Finish(1).views[0][0].contiguous();  // [3, 2, 3]
      for (int c = 0; c < 3; ++c) {
        const size_t number = rule == 0 ? 0 : c;
        for (int i = 0; i < 6; ++i) {
          const uint8_t pixel = sample.view(0).image.pixels()[image_channels == 1 ? i : 3 * i + c];
          const double expected = (pixel / 255.0 - means[rule][number]) / stds[rule][number];
          EXPECT_NEAR(actual.const_data_ptr<float>()[c * 6 + i], expected, 1e-6) << image_channels << rule << c << i;
        }
      }
    }
  }
}

TEST(Normalize, OneOrThreeNumbers_AreAccepted) {
  EXPECT_OK(MakeTransform("{name: Normalize, mean: [0.3], std: [0.4]}"));
  EXPECT_OK(MakeTransform("{name: Normalize, mean: [0.3, 0.4, 0.5], std: [0.4, 0.5, 0.6]}"));
}

TEST(Normalize, WrongParameters_NameKeyAndValues) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: Normalize\nmean: [0.3, 0.4]\nstd: [0.4, 0.5]"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.Normalize.mean is [0.3, 0.4]")));
  EXPECT_THAT(MakeTransform("{name: Normalize, mean: [0.3], std: [1, 1, 1]}"),
              StatusIs(invalid, HasSubstr("equally many in both")));
  EXPECT_THAT(MakeTransform("{name: Normalize}"), StatusIs(invalid, HasSubstr("expected 1 or 3 numbers")));
  EXPECT_THAT(MakeTransform("{name: Normalize, mean: [0.3], std: [0]}"), StatusIs(invalid, HasSubstr("above 0")));
}

TEST(Normalize, PlaceAmongTheTransforms_IsChecked) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> to_tensor, MakeTransform("{name: ToTensor}"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> normalize,
                       MakeTransform("{name: Normalize, mean: [0.3], std: [0.4]}"));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  Sample sample = OneImage(2, 2, 1);

  EXPECT_THAT(ApplyTransform(*normalize, &sample), StatusIs(invalid, HasSubstr("before ToTensor")));
  ASSERT_OK(ApplyTransform(*to_tensor, &sample));
  EXPECT_THAT(ApplyTransform(*to_tensor, &sample), StatusIs(invalid, HasSubstr("after ToTensor")));
  ASSERT_OK(ApplyTransform(*normalize, &sample));
  EXPECT_THAT(ApplyTransform(*normalize, &sample), StatusIs(invalid, HasSubstr("twice")));
}

TEST(ImgToTensor, IsToTensorUnderAnotherName) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> one, MakeTransform("name: ToTensor"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> other, MakeTransform("name: ImgToTensor"));
  EXPECT_EQ(other->name(), "ImgToTensor");
  Sample expected = OneImage(1, 1, 1, 51);
  Sample sample = OneImage(1, 1, 1, 51);
  ASSERT_OK(ApplyTransform(*one, &expected));
  ASSERT_OK(ApplyTransform(*other, &sample));
  EXPECT_EQ(sample.view(0).table->values[51][0], expected.view(0).table->values[51][0]);
}

TEST(ImgPilToRawTensor, KeepsTheScale_NormalizeWorksOnIt) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> raw, MakeTransform("name: ImgPilToRawTensor"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> normalize,
                       MakeTransform("{name: Normalize, mean: [100], std: [50]}"));
  Sample sample = OneImage(1, 1, 1, 51);
  ASSERT_OK(ApplyTransform(*raw, &sample));
  EXPECT_EQ(sample.view(0).table->values[200][0], 200.0f);
  ASSERT_OK(ApplyTransform(*normalize, &sample));
  EXPECT_EQ(sample.view(0).table->values[200][0], 2.0f);
}

}  // namespace
}  // namespace ssl
