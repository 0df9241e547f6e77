// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/sheets/bitmap_font.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace ssl {
namespace {

Image White(int height, int width, int channels = 1) {
  Image image;
  std::fill_n(image.Allocate(height, width, channels), height * width * channels, uint8_t{255});
  return image;
}

// '#' where it is black.
std::string Drawing(const Image& image) {
  std::string drawing;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) drawing += image.row(y)[x * image.channels()] == 0 ? '#' : '.';
    drawing += '\n';
  }
  return drawing;
}

std::string Drawn(const std::string& text, int width) {
  Image image = White(kTextHeight, width);
  DrawText(text, 0, 0, &image);
  return Drawing(image);
}

TEST(BitmapFont, Characters_LookAsTheyShould) {
  EXPECT_EQ(Drawn("F1g", 17),
            "#####...#........\n"
            "#......##....####\n"
            "#.......#...#...#\n"
            "####....#...#...#\n"
            "#.......#....####\n"
            "#.......#.......#\n"
            "#......###...###.\n");
}

TEST(BitmapFont, EveryCharacter_IsItsOwn) {
  std::set<std::string> drawings;
  for (char c = ' '; c <= '~'; ++c) drawings.insert(Drawn(std::string(1, c), 5));
  EXPECT_EQ(drawings.size(), 95u);
}

TEST(BitmapFont, OtherCharacters_AreQuestionMarksOfOnePlace) {
  EXPECT_EQ(Drawn("\xC3\xA4z", 12), Drawn("?z", 12));
  EXPECT_EQ(Drawn("\n", 6), Drawn("?", 6));
  EXPECT_EQ(TextWidth("\xE2\x82\xAC"), kCharacterAdvance);
}

TEST(BitmapFont, Outside_IsLeftOut) {
  Image image = White(5, 8, 3);
  DrawText("HHHH", -2, -3, &image);
  EXPECT_EQ(Drawing(image),
            ".#.#...#\n"
            "##.#####\n"
            ".#.#...#\n"
            ".#.#...#\n"
            ".#.#...#\n");
}

TEST(BitmapFont, LongText_KeepsBothEnds) {
  EXPECT_EQ(ShortenText("FreshFlower/005.jpg", 16 * kCharacterAdvance), "FreshFl..005.jpg");
  EXPECT_EQ(ShortenText("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\xC3\xB6", 4 * kCharacterAdvance), "\xC3\xA4..\xC3\xB6");
  EXPECT_EQ(ShortenText("001.jpg", 7 * kCharacterAdvance), "001.jpg");
  EXPECT_EQ(ShortenText("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F", 3 * kCharacterAdvance), "..\xC3\x9F");
  EXPECT_EQ(ShortenText("001.jpg", 0), "..");
}

}  // namespace
}  // namespace ssl
