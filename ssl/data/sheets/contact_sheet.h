// SPDX-License-Identifier: Apache-2.0
//
// Several images as one, in rows and columns, with captions: for people to look at. Pure functions.
#ifndef SSL_DATA_SHEETS_CONTACT_SHEET_H_
#define SSL_DATA_SHEETS_CONTACT_SHEET_H_

#include <string>
#include <vector>

#include "ssl/data/image/image.h"

namespace ssl {

struct SheetCell {
  Image image;                            // 1 or 3 channels; an empty one leaves its place white
  std::vector<std::string> caption = {};  // lines below the image; each shortened where its column is narrower
};

struct SheetPlace {
  int top = 0;
  int left = 0;
};

// Where each cell's image begins, and the size of the whole.
struct SheetLayout {
  std::vector<std::vector<SheetPlace>> places;  // as the cells
  std::vector<int> widths;                      // of the columns
  int height = 0;
  int width = 0;
};

// A row is as high as its highest cell, a column as wide as its widest image, or as its captions up to 24 characters;
// `gap` white pixels are between cells and around them. Rows may differ in length.
SheetLayout LayOutSheet(const std::vector<std::vector<SheetCell>>& rows, int gap);

// RGB, white where nothing is. Every image has its own pixels, in the upper left corner of its place.
Image DrawSheet(const std::vector<std::vector<SheetCell>>& rows, int gap);

// `source` scaled so that its longer side is `side` pixels. The result is own.
Image FitImage(const Image& source, int side);

}  // namespace ssl

#endif  // SSL_DATA_SHEETS_CONTACT_SHEET_H_
