// SPDX-License-Identifier: Apache-2.0
//
// Where the tiles of winograd_kernels.h lie in their maps, and the transforms between outputs and tiles. All of it
// becomes a part of the functions that call it.
#ifndef SSL_MODELS_WINOGRAD_TILES_H_
#define SSL_MODELS_WINOGRAD_TILES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ssl/models/winograd_forms.h"
#include "ssl/models/winograd_shapes.h"
#include "ssl/models/winograd_transform.h"

// Everything that these functions call becomes a part of them, in their instruction set. Other compilers would make
// code for any x86 of them, which is slower than what they are to replace.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SSL_HAS_AVX512 1
#define SSL_AVX512 __attribute__((target("avx512f"), optimize("O3")))
#else
#define SSL_HAS_AVX512 0
#define SSL_AVX512
#endif

namespace ssl {

// The tiles of a group, of one position.
inline constexpr int64_t kTileBlock = kWinogradGroup * kWinogradChannels;

template <typename Form>
inline constexpr int64_t kSquareOf = kPositionsOf<Form>* kPositionsOf<Form>;

// A pixel outside of all maps.
alignas(64) inline constexpr float kNoPixels[kMostWinogradChannels] = {};

// A tile by its place, and the one after it: kStep pixels further, or at the next kStep rows.
template <int64_t kStep>
class TileWalk {
 public:
  TileWalk(const WinogradMap& shape, int64_t tile)
      : shape_(shape),
        tile_columns_((shape.width + kStep - 1) / kStep),
        map_(tile / TilesPerMap()),
        row_(tile % TilesPerMap() / tile_columns_),
        column_(tile % tile_columns_) {}

  SSL_INLINE void Next() {
    if (++column_ < tile_columns_) return;
    column_ = 0;
    if (kStep * ++row_ < shape_.height) return;
    row_ = 0;
    ++map_;
  }

  // Finds the pixels of a square of `kSide` from `kBefore` pixels above and left of the tile's output on; those outside
  // of the map are at `outside`.
  template <int kSide, int kBefore, typename Float>
  SSL_INLINE void FindPixels(Float* maps, Float* outside, Float** pixels) const {
    const int64_t top = kStep * row_ - kBefore;
    const int64_t left = kStep * column_ - kBefore;
    const int64_t first = ((map_ * shape_.height + top) * shape_.width + left) * shape_.channels;
    bool has_row[kSide];
    bool has_column[kSide];
    for (int64_t i = 0; i < kSide; ++i) has_row[i] = top + i >= 0 && top + i < shape_.height;
    for (int64_t i = 0; i < kSide; ++i) has_column[i] = left + i >= 0 && left + i < shape_.width;
#pragma GCC unroll 49
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const int64_t offset = first + (i / kSide * shape_.width + i % kSide) * shape_.channels;
      pixels[i] = (has_row[i / kSide] & has_column[i % kSide]) ? maps + offset : outside;
    }
  }

  // Asks for the rows of pixels that the tile below reads first: they are too short for the machine to foresee.
  SSL_INLINE void PrefetchBelow(const float* maps, WinogradSlice slice) const {
    const int64_t first = kStep * (row_ + 1) + 1;
    for (int64_t row = first; row < std::min(first + kStep, shape_.height); ++row) {
      for (int64_t column = kStep * column_; column < std::min(kStep * (column_ + 1), shape_.width); ++column) {
        const int64_t pixel = (map_ * shape_.height + row) * shape_.width + column;
        const float* const values = maps + pixel * shape_.channels + slice.first;
        for (int64_t c = 0; c < slice.count; c += kLanes) __builtin_prefetch(values + c);
      }
    }
  }

 private:
  int64_t TilesPerMap() const { return (shape_.height + kStep - 1) / kStep * tile_columns_; }

  const WinogradMap shape_;
  const int64_t tile_columns_;
  int64_t map_;
  int64_t row_;
  int64_t column_;
};

// Where the channels from `channel` on of a group's first position lie.
SSL_INLINE int64_t InGroup(int64_t positions, int64_t channel) {
  return channel / kWinogradChannels * positions * kTileBlock + channel % kWinogradChannels;
}

template <typename Form>
SSL_AVX512 void TransformOutput(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps) {
  constexpr int64_t kPositions = kSquareOf<Form>;
  float* pixels[kOutputsOf<Form> * kOutputsOf<Form>];
  TileWalk<kOutputsOf<Form>> tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.count; ++i, tile.Next()) {
    tile.template FindPixels<kOutputsOf<Form>, 0, float>(maps, nullptr, pixels);
    const float* const from =
        m + i / kWinogradGroup * kPositions * kWinogradGroup * shape.channels + i % kWinogradGroup * kWinogradChannels;
    for (int64_t c = 0; c < shape.channels; c += kLanes) {
      Transform<OutputMatrix<Form>>(AtStride<const float>{from + InGroup(kPositions, c), kTileBlock},
                                    AtPixels<float>{pixels, c});
    }
  }
}

template <typename Form>
SSL_AVX512 void TransformOutputGradient(const float* maps, const WinogradMap& shape, WinogradTiles tiles,
                                        WinogradSlice slice, float* m) {
  constexpr int64_t kPositions = kSquareOf<Form>;
  const float* pixels[kOutputsOf<Form> * kOutputsOf<Form>];
  TileWalk<kOutputsOf<Form>> tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.Groups() * kWinogradGroup; ++i, tile.Next()) {
    if (i < tiles.count) {
      tile.template FindPixels<kOutputsOf<Form>, 0>(maps, kNoPixels, pixels);
    } else {
      for (const float*& pixel : pixels) pixel = kNoPixels;
    }
    float* const to =
        m + i / kWinogradGroup * kPositions * kWinogradGroup * slice.count + i % kWinogradGroup * kWinogradChannels;
    for (int64_t c = 0; c < slice.count; c += kLanes) {
      Transform<TransposeOf<OutputMatrix<Form>>>(AtPixels<const float>{pixels, slice.first + c},
                                                 AtStride<float>{to + InGroup(kPositions, c), kTileBlock});
    }
  }
}

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_TILES_H_
