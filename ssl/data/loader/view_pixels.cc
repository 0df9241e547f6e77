// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/view_pixels.h"

#include <algorithm>

#include "ssl/data/loader/pixel_order.h"

namespace ssl {
namespace {

// A row is written in pieces.
constexpr int kPiecePixels = 512;

// `count` pixels where they lie in the image.
void WritePiece(const View& view, const uint8_t* pixels, int count, int channels, uint8_t* output) {
  if (view.image.channels() == 3) {
    view.flipped ? MirrorColour(pixels, count, output) : void(std::copy_n(pixels, 3 * count, output));
    return;
  }
  uint8_t mirrored[kPiecePixels];
  if (view.flipped) {
    std::reverse_copy(pixels, pixels + count, mirrored);
    pixels = mirrored;
  }
  channels == 3 ? RepeatGrey(pixels, count, output) : void(std::copy_n(pixels, count, output));
}

}  // namespace

void WriteViewPixels(const View& view, int channels, uint8_t* output) {
  const int width = view.image.width();
  for (int y = 0; y < view.image.height(); ++y) {
    for (int first = 0; first < width; first += kPiecePixels) {
      const int count = std::min(width - first, kPiecePixels);
      const int begin = view.flipped ? width - first - count : first;
      const uint8_t* const pixels = view.image.row(y) + static_cast<int64_t>(begin) * view.image.channels();
      WritePiece(view, pixels, count, channels, output);
      output += static_cast<int64_t>(count) * channels;
    }
  }
}

}  // namespace ssl
