// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/pixel_table.h"

#include <random>

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

TEST(PixelTable, Raw_IsThePixel) {
  const PixelTable table = MakeRawTable();
  for (int pixel = 0; pixel < 256; ++pixel) EXPECT_EQ(table.values[pixel][2], static_cast<float>(pixel));
  const PixelTable normalized = MakeNormalizeTable({10}, {4}, PixelFloats::kRaw);
  EXPECT_EQ(normalized.channels, 1);
  EXPECT_FLOAT_EQ(normalized.values[14][1], 1.0f);
}

TEST(PixelTable, Lab_HasARulePerChannel) {
  const PixelTable table = MakeLabTable();
  EXPECT_EQ(table.channels, 3);
  EXPECT_FLOAT_EQ(table.values[51][0], 51 * 100.0f / 255.0f - 50.0f);
  EXPECT_EQ(table.values[0][1], -128.0f);
  EXPECT_EQ(table.values[255][2], 127.0f);
  const PixelTable normalized = MakeNormalizeTable({1}, {2}, PixelFloats::kLab);
  EXPECT_EQ(normalized.channels, 3);
  EXPECT_FLOAT_EQ(normalized.values[255][0], 24.5f);
  EXPECT_FLOAT_EQ(normalized.values[255][1], 63.0f);
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

void ExpectFormula(const PixelTable& table) {
  ASSERT_TRUE(table.has_formula);
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int c = 0; c < 4; ++c) ASSERT_EQ(table.formula(pixel, c), table.values[pixel][c]) << pixel << ", " << c;
  }
}

TEST(PixelTable, Formula_GivesTheTableBitByBit) {
  ExpectFormula(MakeToTensorTable());
  ExpectFormula(MakeRawTable());
  ExpectFormula(MakeNormalizeTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  ExpectFormula(MakeNormalizeTable({0.286}, {0.353}));
  ExpectFormula(MakeNormalizeTable({123.7, 116.3, 103.5}, {58.4, 57.1, 57.4}, PixelFloats::kRaw));
  std::mt19937_64 random(20261123);
  std::uniform_real_distribution<double> draw(0.001, 1.0);
  for (int i = 0; i < 1000; ++i) ExpectFormula(MakeNormalizeTable({draw(random)}, {draw(random)}));
}

TEST(PixelTable, Lab_HasNoFormula) { EXPECT_FALSE(MakeLabTable().has_formula); }

}  // namespace
}  // namespace ssl
