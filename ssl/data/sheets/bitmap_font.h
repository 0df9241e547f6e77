// SPDX-License-Identifier: Apache-2.0
//
// Text in images, of characters that are 5 pixels wide and 7 high. ASCII; any other character is drawn as '?'. Pure
// functions.
#ifndef SSL_DATA_SHEETS_BITMAP_FONT_H_
#define SSL_DATA_SHEETS_BITMAP_FONT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "ssl/data/image/image.h"

namespace ssl {

inline constexpr int kTextHeight = 7;        // pixels
inline constexpr int kCharacterAdvance = 6;  // pixels from one character to the next

// Pixels, of UTF-8.
int TextWidth(absl::string_view text);

// `text`, or its beginning and its end around ".." where it is wider than `width` pixels: of "class/file" both tell.
std::string ShortenText(absl::string_view text, int width);

// In black, from (top, left) of an own image (Image::Allocate); what lies outside is left out.
void DrawText(absl::string_view text, int top, int left, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_SHEETS_BITMAP_FONT_H_
