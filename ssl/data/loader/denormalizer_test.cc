// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/denormalizer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

Denormalizer Of(const char* transforms) {
  return Denormalizer::Create(ParseYaml(transforms, "test.yaml", nullptr).value()).value();
}

// [1, 3, 16, 16]: every 8-bit value through the table that fills batches.
at::Tensor AllValues(const PixelTable& table) {
  at::Tensor images = at::empty({1, 3, 16, 16}, at::kFloat);
  float* values = images.mutable_data_ptr<float>();
  for (int channel = 0; channel < 3; ++channel) {
    for (int v = 0; v < 256; ++v) values[256 * channel + v] = table.values[v][channel];
  }
  return images;
}

TEST(Denormalizer, GivesEveryPixelBack) {
  const Denormalizer denormalizer =
      Of("[{name: ToTensor}, {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}]");
  const at::Tensor images = AllValues(MakeNormalizeTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  const at::Tensor pixels = denormalizer.ToPixels(images);
  ASSERT_EQ(pixels.sizes(), at::IntArrayRef({1, 16, 16, 3}));
  const at::Tensor unit = denormalizer.ToUnit(images);
  for (int v = 0; v < 256; ++v) {
    for (int channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(pixels[0][v / 16][v % 16][channel].item<int64_t>(), v);
      EXPECT_EQ(unit[0][channel][v / 16][v % 16].item<float>(), static_cast<float>(v) / 255.0f);
    }
  }
}

TEST(Denormalizer, RawTensors_AreThePixels) {
  const at::Tensor raw = Of("[{name: ImgPilToRawTensor}]").ToPixels(AllValues(MakeRawTable()));
  EXPECT_EQ(raw[0][15][14][2].item<int64_t>(), 254);
  EXPECT_EQ(raw[0][0][3][1].item<int64_t>(), 3);
  const at::Tensor normalized = Of("[{name: ImgPilToRawTensor}, {name: Normalize, mean: [100], std: [50]}]")
                                    .ToPixels(AllValues(MakeNormalizeTable({100.0}, {50.0}, PixelFloats::kRaw)));
  EXPECT_EQ(normalized[0][15][14][2].item<int64_t>(), 254);
}

TEST(Denormalizer, Lab_IsShownAsTheColourThatItIs) {
  const Denormalizer denormalizer =
      Of("[{name: ImgPil2LabTensor}, {name: Normalize, mean: [50, 0, 0], std: [25, 20, 20]}]");
  const at::Tensor white = at::tensor({(100.0 - 50.0) / 25.0, 0.0, 0.0}).view({1, 3, 1, 1}).to(at::kFloat);
  const at::Tensor pixels = denormalizer.ToPixels(white);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(pixels[0][0][0][c].item<int64_t>(), 255) << c;
}

TEST(Denormalizer, WithoutNormalize_ValuesAreThoseOfToTensor) {
  const at::Tensor pixels = Of("[{name: ToTensor}]").ToPixels(AllValues(MakeToTensorTable()));
  EXPECT_EQ(pixels[0][15][14][2].item<int64_t>(), 254);
}

TEST(TreatsViewsAlike, FloatsOfSomeViews_AreNotAlike) {
  const auto alike = [](const char* list) { return TreatsViewsAlike(ParseYaml(list, "test.yaml", nullptr).value()); };
  EXPECT_TRUE(alike("[]"));
  EXPECT_TRUE(
      alike("[{name: ImgPilGaussianBlur, indices: [1]}, {name: ToTensor}, {name: Normalize, mean: [0.5], "
            "std: [0.5], indices: []}]"));
  EXPECT_TRUE(alike("[{name: ImgPilMultiCropRandomApply, transforms: [{name: Grayscale}], prob: [0.5]}]"));
  EXPECT_FALSE(alike("[{name: ToTensor}, {name: Normalize, mean: [0.5], std: [0.5], indices: [0]}]"));
  EXPECT_FALSE(alike("[{name: ToTensor, indices: [0]}, {name: ImgPilToRawTensor, indices: [1]}]"));
  EXPECT_FALSE(
      alike("[{name: ToTensor}, {name: ImgPilMultiCropRandomApply, prob: [1, 0], transforms: [{name: "
            "Normalize, mean: [0.5], std: [0.5]}]}]"));
}

TEST(Denormalizer, ValuesBeyondBlackAndWhite_AreCutOff) {
  const Denormalizer denormalizer = Of("[{name: Normalize, mean: [0.5], std: [0.25]}]");
  EXPECT_EQ(denormalizer.ToPixels(at::full({1, 1, 1, 1}, 3.0, at::kFloat))[0][0][0][0].item<int64_t>(), 255);
  EXPECT_EQ(denormalizer.ToPixels(at::full({1, 1, 1, 1}, -3.0, at::kFloat))[0][0][0][0].item<int64_t>(), 0);
}

}  // namespace
}  // namespace ssl
