// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/view_floats.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

// A row is written in pieces whose bytes and floats stay in the processor's first cache.
constexpr int kPiecePixels = 512;
constexpr int kPieceValues = 3 * kPiecePixels;

constexpr int kBlock = 16;
using Bytes [[gnu::vector_size(kBlock)]] = uint8_t;

// Views of so many floats go to memory past the caches, which they would only sweep.
constexpr int64_t kStreamedFloats = 1 << 14;

// Bytes in the order of writing, with room for a block that ends behind the last.
using Piece = uint8_t[kPieceValues + kBlock];

// Pixel i of `mirrored` is pixel count - 1 - i of `pixels`: five pixels at once, the last 15 bytes of a block.
SSL_VECTORIZE
void MirrorColour(const uint8_t* pixels, int count, uint8_t* __restrict mirrored) {
  int i = 0;
  for (; i + 6 <= count; i += 5) {
    Bytes block;
    std::memcpy(&block, pixels + 3 * (count - i) - kBlock, kBlock);
    block = __builtin_shufflevector(block, block, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    std::memcpy(mirrored + 3 * i, &block, kBlock);
  }
  for (; i < count; ++i) std::copy_n(pixels + 3 * (count - 1 - i), 3, mirrored + 3 * i);
}

SSL_VECTORIZE
void RepeatGrey(const uint8_t* greys, int count, uint8_t* __restrict pixels) {
  for (int i = 0; i < count; ++i) pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = greys[i];
}

// The pixels [first, first + count) of a written row as `channels` bytes each; in `piece` where the image does not hold
// them so.
const uint8_t* ArrangePixels(const View& view, const uint8_t* row, int first, int count, int channels, Piece* piece) {
  const int image_channels = view.image.channels();
  const int begin = view.flipped ? view.image.width() - first - count : first;
  const uint8_t* pixels = row + static_cast<int64_t>(begin) * image_channels;
  uint8_t mirrored[kPiecePixels];
  if (view.flipped && image_channels == 3) {
    MirrorColour(pixels, count, *piece);
    return *piece;
  }
  if (view.flipped) {
    std::reverse_copy(pixels, pixels + count, mirrored);
    pixels = mirrored;
  }
  if (image_channels == channels && !view.flipped) return pixels;
  if (channels == 3) {
    RepeatGrey(pixels, count, *piece);
  } else {
    std::copy_n(pixels, count, *piece);
  }
  return *piece;
}

// The factors of so many values in turn, whole pixels and whole vectors.
struct Factors {
  static constexpr int kValues = 48;

  Factors(const PixelFormula& formula, int channels) : scale(formula.scale) {
    for (int i = 0; i < kValues; ++i) {
      mean[i] = formula.mean[i % channels];
      high[i] = formula.inverse_std[i % channels].high;
      low[i] = formula.inverse_std[i % channels].low;
    }
  }
  PixelFormula::Factor scale;
  float mean[kValues];
  float high[kValues];  // of 1 / std
  float low[kValues];
};

// PixelFormula.
SSL_PIXEL_FUNCTION float ToFloat(uint8_t value, const Factors& factors, int i) {
  const float pixel = value;
  const float difference = __builtin_fmaf(pixel, factors.scale.high, pixel * factors.scale.low) - factors.mean[i];
  return __builtin_fmaf(difference, factors.high[i], difference * factors.low[i]);
}

SSL_VECTORIZE_FUSED
void ComputeFloats(const uint8_t* values, int64_t count, const Factors& factors, float* __restrict floats) {
  int64_t first = 0;
  for (; first + Factors::kValues <= count; first += Factors::kValues) {
    for (int i = 0; i < Factors::kValues; ++i) floats[first + i] = ToFloat(values[first + i], factors, i);
  }
  for (int i = 0; first + i < count; ++i) floats[first + i] = ToFloat(values[first + i], factors, i);
}

void LookUpFloats(const uint8_t* values, int pixels, int channels, const PixelTable& table, float* floats) {
  for (int i = 0; i < pixels; ++i) {
    for (int c = 0; c < channels; ++c) *floats++ = table.values[*values++][c];
  }
}

#ifdef __SSE2__
constexpr int kVectorFloats = 4;

bool CanStream(const View& view, int channels, const float* output) {
  return view.image.width() * channels % kVectorFloats == 0 && reinterpret_cast<uintptr_t>(output) % 16 == 0 &&
         static_cast<int64_t>(view.image.height()) * view.image.width() * channels >= kStreamedFloats;
}

void Stream(const float* floats, int64_t count, float* output) {
  for (int64_t i = 0; i < count; i += kVectorFloats) _mm_stream_ps(output + i, _mm_loadu_ps(floats + i));
}

// What was streamed is seen by other threads before what follows.
void EndStream() { _mm_sfence(); }
#else
bool CanStream(const View&, int, const float*) { return false; }
void Stream(const float* floats, int64_t count, float* output) { std::copy_n(floats, count, output); }
void EndStream() {}
#endif

}  // namespace

void WriteViewFloats(const View& view, int channels, float* output) {
  const Factors factors(view.table->formula, channels);
  const bool computes = view.table->has_formula && FusesFast();
  const bool streams = CanStream(view, channels, output);
  const int width = view.image.width();
  Piece piece;
  float floats[kPieceValues];
  for (int y = 0; y < view.image.height(); ++y) {
    for (int first = 0; first < width; first += kPiecePixels) {
      const int count = std::min(width - first, kPiecePixels);
      const uint8_t* values = ArrangePixels(view, view.image.row(y), first, count, channels, &piece);
      float* target = streams ? floats : output;
      if (computes) {
        ComputeFloats(values, count * channels, factors, target);
      } else {
        LookUpFloats(values, count, channels, *view.table, target);
      }
      if (streams) Stream(floats, count * channels, output);
      output += count * channels;
    }
  }
  if (streams) EndStream();
}

}  // namespace ssl
