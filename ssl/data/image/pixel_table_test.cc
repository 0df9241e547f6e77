// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/pixel_table.h"

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(PixelTable, ToTensor_DividesBy255) {
  const PixelTable table = MakeToTensorTable();

  EXPECT_EQ(table.channels, 1);
  EXPECT_FALSE(table.normalized);
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int c = 0; c < 3; ++c) EXPECT_FLOAT_EQ(table.values[pixel][c], pixel / 255.0f);
  }
}

TEST(PixelTable, NormalizeWithOneValue_IsTheSameForAllChannels) {
  const PixelTable table = MakeNormalizeTable({0.286}, {0.353});

  EXPECT_EQ(table.channels, 1);
  EXPECT_TRUE(table.normalized);
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(table.values[pixel][c], (pixel / 255.0 - 0.286) / 0.353, 1e-6);
  }
}

TEST(PixelTable, NormalizeWithThreeValues_HasARulePerChannel) {
  const double mean[] = {0.485, 0.456, 0.406};
  const double std[] = {0.229, 0.224, 0.225};

  const PixelTable table = MakeNormalizeTable({mean, mean + 3}, {std, std + 3});

  EXPECT_EQ(table.channels, 3);
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(table.values[pixel][c], (pixel / 255.0 - mean[c]) / std[c], 1e-6);
  }
}

}  // namespace
}  // namespace ssl
