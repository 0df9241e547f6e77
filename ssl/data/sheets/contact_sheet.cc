// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/sheets/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/sheets/bitmap_font.h"

namespace ssl {
namespace {

constexpr uint8_t kWhite = 255;
constexpr int kLineGap = 2;  // pixels above a line of a caption
constexpr int kLineHeight = kLineGap + kTextHeight;
constexpr int kWidestCaption = 24 * kCharacterAdvance;

int HeightOf(const SheetCell& cell) {
  return cell.image.height() + kLineHeight * static_cast<int>(cell.caption.size());
}

int WidthOf(const SheetCell& cell) {
  int width = cell.image.width();
  for (const std::string& line : cell.caption) width = std::max(width, std::min(TextWidth(line), kWidestCaption));
  return width;
}

void DrawImage(const Image& image, const SheetPlace& place, Image* sheet) {
  uint8_t* pixels = sheet->MutablePixels();
  for (int y = 0; y < image.height(); ++y) {
    uint8_t* to = pixels + 3 * (int64_t{place.top + y} * sheet->width() + place.left);
    const uint8_t* from = image.row(y);
    if (image.channels() == 3) {
      std::copy_n(from, 3 * image.width(), to);
      continue;
    }
    for (int x = 0; x < image.width(); ++x) std::fill_n(to + 3 * x, 3, from[x]);
  }
}

void DrawCaption(const SheetCell& cell, const SheetPlace& place, int width, Image* sheet) {
  int top = place.top + cell.image.height() + kLineGap;
  for (const std::string& line : cell.caption) {
    DrawText(ShortenText(line, width), top, place.left, sheet);
    top += kLineHeight;
  }
}

}  // namespace

SheetLayout LayOutSheet(const std::vector<std::vector<SheetCell>>& rows, int gap) {
  SheetLayout layout;
  for (const std::vector<SheetCell>& row : rows) {
    layout.widths.resize(std::max(layout.widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      layout.widths[column] = std::max(layout.widths[column], WidthOf(row[column]));
    }
  }
  layout.height = gap;
  for (const std::vector<SheetCell>& row : rows) {
    std::vector<SheetPlace>& places = layout.places.emplace_back();
    int left = gap;
    int highest = 0;
    for (size_t column = 0; column < row.size(); ++column) {
      places.push_back({layout.height, left});
      left += layout.widths[column] + gap;
      highest = std::max(highest, HeightOf(row[column]));
    }
    layout.height += highest + gap;
  }
  layout.width = gap;
  for (const int width : layout.widths) layout.width += width + gap;
  return layout;
}

Image DrawSheet(const std::vector<std::vector<SheetCell>>& rows, int gap) {
  const SheetLayout layout = LayOutSheet(rows, gap);
  Image sheet;
  uint8_t* pixels = sheet.Allocate(layout.height, layout.width, 3);
  std::fill_n(pixels, sheet.size_bytes(), kWhite);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < rows[row].size(); ++column) {
      const SheetCell& cell = rows[row][column];
      const SheetPlace& place = layout.places[row][column];
      DrawImage(cell.image, place, &sheet);
      DrawCaption(cell, place, layout.widths[column], &sheet);
    }
  }
  return sheet;
}

Image FitImage(const Image& source, int side) {
  const double scale = static_cast<double>(side) / std::max(source.height(), source.width());
  const auto scaled = [scale](int length) { return std::max(1, static_cast<int>(std::lround(length * scale))); };
  Image result;
  Resampler().CropAndResize(source, {0, 0, source.height(), source.width()}, scaled(source.height()),
                            scaled(source.width()), &result);
  return result;
}

}  // namespace ssl
