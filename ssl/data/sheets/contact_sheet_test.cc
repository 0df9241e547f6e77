// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/sheets/contact_sheet.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "ssl/data/sheets/bitmap_font.h"

namespace ssl {
namespace {

SheetCell Cell(int height, int width, int channels, uint8_t value, const std::string& caption = "") {
  SheetCell cell;
  std::fill_n(cell.image.Allocate(height, width, channels), height * width * channels, value);
  if (!caption.empty()) cell.caption = {caption};
  return cell;
}

std::vector<std::vector<SheetCell>> OneRow(SheetCell first, SheetCell second) {
  std::vector<std::vector<SheetCell>> rows(1);
  rows[0].push_back(std::move(first));
  rows[0].push_back(std::move(second));
  return rows;
}

int At(const Image& sheet, int y, int x, int channel = 0) { return sheet.row(y)[3 * x + channel]; }

TEST(ContactSheet, WithoutGapAndCaptions_ImagesLieSideBySide) {
  const Image sheet = DrawSheet(OneRow(Cell(4, 3, 1, 10), Cell(2, 2, 3, 20)), 0);
  ASSERT_EQ(sheet.height(), 4);
  ASSERT_EQ(sheet.width(), 5);
  ASSERT_EQ(sheet.channels(), 3);
  for (int channel = 0; channel < 3; ++channel) {
    EXPECT_EQ(At(sheet, 3, 2, channel), 10);
    EXPECT_EQ(At(sheet, 1, 4, channel), 20);
    EXPECT_EQ(At(sheet, 2, 3, channel), 255);  // below the smaller one
  }
}

TEST(ContactSheet, GapsAndCaptions_HaveTheirPlace) {
  const auto rows = OneRow(Cell(4, 3, 1, 10, "I"), Cell(2, 30, 3, 20));
  const SheetLayout layout = LayOutSheet(rows, 2);
  EXPECT_EQ(layout.places[0][1].left, 2 + kCharacterAdvance + 2);  // the caption is wider than the image
  EXPECT_EQ(layout.height, 2 + 4 + 2 + kTextHeight + 2);
  const Image sheet = DrawSheet(rows, 2);
  EXPECT_EQ(sheet.height(), layout.height);
  EXPECT_EQ(sheet.width(), layout.width);
  EXPECT_EQ(At(sheet, 2, 2), 10);
  EXPECT_EQ(At(sheet, 2, 10), 20);
  EXPECT_EQ(At(sheet, 2 + 4 + 2, 2 + 2), 0);  // the bar of the I
}

TEST(ContactSheet, LinesOfACaption_AreBelowOneAnother) {
  std::vector<std::vector<SheetCell>> rows = OneRow(Cell(4, 3, 1, 10, "I"), Cell(4, 3, 1, 20));
  rows[0][0].caption.push_back("II");
  const SheetLayout layout = LayOutSheet(rows, 0);
  EXPECT_EQ(layout.height, 4 + 2 * (2 + kTextHeight));
  EXPECT_EQ(layout.widths[0], 2 * kCharacterAdvance) << "the widest line";
  const Image sheet = DrawSheet(rows, 0);
  const int second_bar = kCharacterAdvance + 2;
  EXPECT_EQ(At(sheet, 4 + 2, second_bar), 255);
  EXPECT_EQ(At(sheet, 4 + 2 + kTextHeight + 2, second_bar), 0);
}

TEST(ContactSheet, ClassAndNameOfAPhotograph_FitBesideASmallImage) {
  const std::string name = "FreshFlower/IMG_005.jpg";
  std::vector<std::vector<SheetCell>> rows(1);
  rows[0].push_back(Cell(72, 96, 3, 10, name));
  EXPECT_EQ(LayOutSheet(rows, 0).widths[0], TextWidth(name));
}

TEST(ContactSheet, RowsOfUnequalLength) {
  std::vector<std::vector<SheetCell>> rows = OneRow(Cell(4, 3, 1, 10), Cell(2, 2, 3, 20));
  rows.emplace_back().push_back(Cell(1, 6, 1, 30));
  const Image sheet = DrawSheet(rows, 0);
  ASSERT_EQ(sheet.height(), 5);
  ASSERT_EQ(sheet.width(), 8);
  EXPECT_EQ(At(sheet, 0, 6), 20);
  EXPECT_EQ(At(sheet, 4, 5), 30);
  EXPECT_EQ(At(sheet, 4, 6), 255);
}

TEST(ContactSheet, FitImage_KeepsTheProportion) {
  const Image wide = FitImage(Cell(300, 400, 3, 70).image, 40);
  EXPECT_EQ(wide.height(), 30);
  EXPECT_EQ(wide.width(), 40);
  EXPECT_EQ(At(wide, 29, 39), 70);
  EXPECT_EQ(FitImage(Cell(2, 1000, 1, 70).image, 50).height(), 1);
}

}  // namespace
}  // namespace ssl
