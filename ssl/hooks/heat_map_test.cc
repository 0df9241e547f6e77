// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/heat_map.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/image.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

at::Tensor Values(const std::vector<double>& values, at::IntArrayRef shape) {
  return at::tensor(values, at::kFloat).view(shape);
}

TEST(HeatMap, Activations_AreThePositivePartOfTheSumOverChannels) {
  // One image, two channels, 2 x 2: sums -1, 1, 3, 5.
  const at::Tensor features = Values({-2, 0, 1, 2, 1, 1, 2, 3}, {1, 2, 2, 2});
  EXPECT_TRUE(at::allclose(ActivationMap(features), Values({0, 0.2, 0.6, 1}, {1, 2, 2})));
}

TEST(HeatMap, GradCam_WeighsChannelsByTheirMeanGradient) {
  const at::Tensor features = Values({1, 2, 3, 4, 4, 0, 0, 0}, {1, 2, 2, 2});
  const at::Tensor gradients = Values({2, 2, 0, 0, -4, 0, 0, 0}, {1, 2, 2, 2});  // means 1 and -1
  // 1 - 4 -> 0, 2, 3, 4.
  EXPECT_TRUE(at::allclose(GradCamMap(features, gradients), Values({0, 0.5, 0.75, 1}, {1, 2, 2})));
}

TEST(HeatMap, Images_AreStretchedEachForItselfAndFlatOnesAreZero) {
  const at::Tensor features = Values({0, 1, 2, 4, 5, 5, 5, 5}, {2, 1, 2, 2});
  EXPECT_TRUE(at::allclose(ActivationMap(features), Values({0, 0.25, 0.5, 1, 0, 0, 0, 0}, {2, 2, 2})));
  const at::Tensor broken = at::full({1, 1, 2, 2}, std::nan(""));
  EXPECT_EQ(ActivationMap(broken).abs().max().item<double>(), 0.0);
}

TEST(HeatMap, Colours_GoFromBlueOverGreenToRed) {
  const at::Tensor colours = HeatColours(Values({0, 0.25, 0.5, 0.75, 1}, {5}));
  EXPECT_TRUE(at::allclose(colours, Values({0, 0, 0.5, 0, 0.5, 1, 0.5, 1, 0.5, 1, 0.5, 0, 0.5, 0, 0}, {5, 3})));
}

TEST(HeatMap, Resizing_KeepsTheRange) {
  const at::Tensor maps = Values({0, 1, 1, 0}, {1, 2, 2});
  for (const Interpolation interpolation :
       {Interpolation::kLinear, Interpolation::kNearest, Interpolation::kCubic, Interpolation::kArea}) {
    const at::Tensor resized = ResizeMaps(maps, 8, interpolation);
    EXPECT_EQ(resized.sizes(), at::IntArrayRef({1, 8, 8}));
    EXPECT_GE(resized.min().item<double>(), 0.0);
    EXPECT_LE(resized.max().item<double>(), 1.0);
    EXPECT_EQ(resized[0][0][7].item<double>(), 1.0);
  }
  EXPECT_EQ(ResizeMaps(maps, 4, Interpolation::kNearest)[0][1][1].item<double>(), 0.0);
  EXPECT_EQ(ResizeMaps(maps, 4, Interpolation::kNearest)[0][1][2].item<double>(), 1.0);
}

TEST(HeatMap, Drawing_IsTheMeanOfImageAndColours) {
  const at::Tensor images = Values({10, 20, 10, 20}, {1, 1, 2, 2});  // black and white after stretching
  const at::Tensor drawing = DrawOverImages(at::zeros({1, 2, 2}), images);
  EXPECT_EQ(drawing.sizes(), at::IntArrayRef({1, 2, 2, 3}));
  const auto pixel = [&drawing](int64_t x) {
    std::vector<int64_t> channels;
    for (int64_t c = 0; c < 3; ++c) channels.push_back(drawing[0][0][x][c].item<int64_t>());
    return channels;
  };
  EXPECT_THAT(pixel(0), ElementsAre(0, 0, 64));
  EXPECT_THAT(pixel(1), ElementsAre(128, 128, 191));
}

TEST(HeatMap, Files_HoldTheDrawings) {
  const at::Tensor drawings = at::arange(2 * 4 * 4 * 3).to(at::kByte).view({2, 4, 4, 3});
  const std::string directory = MakeTempDir("drawings") + "/a/b";
  // What a killed process has left, of this name and of another's.
  for (const char* left : {"/res5_1.png.tmp-25649", "/res4_1.png.tmp-25649"}) {
    ASSERT_OK(PosixFileSystem().CreateDirectories(directory));
    ASSERT_OK(PosixFileSystem().Create(directory + left));
  }
  ASSERT_OK(WriteDrawings(drawings, "res5", {directory, ""}, PosixFileSystem()));
  EXPECT_THAT(PosixFileSystem().List(directory).value(),
              ElementsAre("res4_1.png.tmp-25649", "res5_0.png", "res5_1.png"));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, PosixFileSystem().Read(directory + "/res5_1.png"));
  Image image;
  ASSERT_OK(DecodePng(bytes, DecodeLimits(), &image));
  ASSERT_EQ(image.size_bytes(), 48);
  for (int i = 0; i < 48; ++i) EXPECT_EQ(image.pixels()[i], 48 + i);
}

TEST(HeatMap, DrawingsOfADevice_AreWrittenAsThoseOfTheHost) {
  StandinDevice::Install();
  const at::Tensor drawings = at::arange(48).view({1, 4, 4, 3}).to(at::kByte);
  const std::string directory = MakeTempDir("drawings") + "/a";
  ASSERT_OK(WriteDrawings(drawings.to(StandinDevice::device()), "device", {directory, ""}, PosixFileSystem()));
  ASSERT_OK(WriteDrawings(drawings, "host", {directory, ""}, PosixFileSystem()));
  EXPECT_EQ(PosixFileSystem().Read(directory + "/device_0.png").value(),
            PosixFileSystem().Read(directory + "/host_0.png").value());
}

}  // namespace
}  // namespace ssl
