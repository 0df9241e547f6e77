// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/winograd_kernels.h"

#include <cstring>

// Everything that these functions call becomes a part of them, in their instruction set.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SSL_AVX512 __attribute__((target("avx512f"), optimize("O3")))
#else
#define SSL_AVX512
#endif
#define SSL_INLINE inline __attribute__((always_inline))

namespace ssl {
namespace {

constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

constexpr int64_t kPositions = kWinogradPositions;
constexpr int64_t kChannels = kWinogradChannels;
// Of one position: the tiles of a group, and kernels.
constexpr int64_t kTileBlock = kWinogradGroup * kChannels;
constexpr int64_t kKernelBlock = kChannels * kChannels;

// A pixel outside of all maps.
alignas(64) constexpr float kPadding[kMostWinogradChannels] = {};

// Vectors go by reference: by value their calling convention would depend on the instruction set.
SSL_INLINE void Load(const float* from, Floats& out) { std::memcpy(&out, from, sizeof(out)); }
SSL_INLINE void Store(const Floats& value, float* to) { std::memcpy(to, &value, sizeof(value)); }

// The four matrices, by a column or a row of a small matrix: `kStep` values lie between those that belong together.
template <int kStep>
SSL_INLINE void ApplyB(const Floats* d, Floats* out) {
  out[0] = d[0] - d[2 * kStep];
  out[kStep] = d[kStep] + d[2 * kStep];
  out[2 * kStep] = d[2 * kStep] - d[kStep];
  out[3 * kStep] = d[kStep] - d[3 * kStep];
}

template <int kStep, int kOutStep>
SSL_INLINE void ApplyA(const Floats* m, Floats* out) {
  out[0] = m[0] + m[kStep] + m[2 * kStep];
  out[kOutStep] = m[kStep] - m[2 * kStep] - m[3 * kStep];
}

template <int kStep>
SSL_INLINE void ApplyTransposedA(const Floats* y, Floats* out) {
  out[0] = y[0];
  out[kStep] = y[0] + y[kStep];
  out[2 * kStep] = y[0] - y[kStep];
  out[3 * kStep] = -y[kStep];
}

template <int kStep>
SSL_INLINE void ApplyG(const Floats* g, Floats* out) {
  const Floats ends = (g[0] + g[2 * kStep]) * 0.5f;
  const Floats middle = g[kStep] * 0.5f;
  out[0] = g[0];
  out[kStep] = ends + middle;
  out[2 * kStep] = ends - middle;
  out[3 * kStep] = g[2 * kStep];
}

template <int kStep>
SSL_INLINE void ApplyTransposedG(const Floats* u, Floats* out) {
  const Floats sum = (u[kStep] + u[2 * kStep]) * 0.5f;
  out[0] = u[0] + sum;
  out[kStep] = (u[kStep] - u[2 * kStep]) * 0.5f;
  out[2 * kStep] = sum + u[3 * kStep];
}

// A tile by its place, and the one after it.
class TileWalk {
 public:
  TileWalk(const WinogradMap& shape, int64_t tile)
      : shape_(shape),
        map_(tile / shape.TilesPerMap()),
        row_(tile % shape.TilesPerMap() / shape.TileColumns()),
        column_(tile % shape.TileColumns()) {}

  SSL_INLINE void Next() {
    if (++column_ < shape_.TileColumns()) return;
    column_ = 0;
    if (2 * ++row_ < shape_.height) return;
    row_ = 0;
    ++map_;
  }

  // Finds the pixels of a square of `kSide` from `kBefore` pixels above and left of the tile's output on; those outside
  // of the map are at `outside`.
  template <int kSide, int kBefore, typename Float>
  SSL_INLINE void FindPixels(Float* maps, Float* outside, Float** pixels) const {
    const int64_t top = 2 * row_ - kBefore;
    const int64_t left = 2 * column_ - kBefore;
    const int64_t first = ((map_ * shape_.height + top) * shape_.width + left) * shape_.channels;
    bool has_row[kSide];
    bool has_column[kSide];
    for (int64_t i = 0; i < kSide; ++i) has_row[i] = top + i >= 0 && top + i < shape_.height;
    for (int64_t i = 0; i < kSide; ++i) has_column[i] = left + i >= 0 && left + i < shape_.width;
#pragma GCC unroll 16
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const int64_t offset = first + (i / kSide * shape_.width + i % kSide) * shape_.channels;
      pixels[i] = has_row[i / kSide] & has_column[i % kSide] ? maps + offset : outside;
    }
  }

  // Asks for the rows of pixels that the tile below reads first: they are too short for the machine to foresee.
  SSL_INLINE void PrefetchBelow(const float* maps) const {
    const int64_t row = 2 * row_ + 3;
    if (row + 1 >= shape_.height) return;
    const int64_t row_floats = shape_.width * shape_.channels;
    const float* const pixels = maps + (map_ * shape_.height + row) * row_floats + 2 * column_ * shape_.channels;
    for (int64_t c = 0; c < 2 * shape_.channels; c += kLanes) {
      __builtin_prefetch(pixels + c);
      __builtin_prefetch(pixels + row_floats + c);
    }
  }

 private:
  const WinogradMap shape_;
  int64_t map_;
  int64_t row_;
  int64_t column_;
};

// Where the channels from `channel` on of a group's first position lie.
SSL_INLINE int64_t InGroup(int64_t channel) {
  return channel / kChannels * kPositions * kTileBlock + channel % kChannels;
}

SSL_INLINE void StorePositions(const Floats* values, int64_t stride, float* to) {
#pragma GCC unroll 16
  for (int64_t p = 0; p < kPositions; ++p) Store(values[p], to + p * stride);
}

SSL_INLINE void LoadPositions(const float* from, int64_t stride, Floats* values) {
#pragma GCC unroll 16
  for (int64_t p = 0; p < kPositions; ++p) Load(from + p * stride, values[p]);
}

SSL_INLINE void TransformInputTile(const float* const* pixels, int64_t channels, float* v) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Floats d[kPositions];
    Floats columns[kPositions];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kPositions; ++i) Load(pixels[i] + c, d[i]);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) ApplyB<4>(d + i, columns + i);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) ApplyB<1>(columns + 4 * i, d + 4 * i);
    StorePositions(d, kTileBlock, v + InGroup(c));
  }
}

SSL_INLINE void TransformGradientTile(const float* const* pixels, WinogradSlice slice, float* m) {
  for (int64_t c = 0; c < slice.count; c += kLanes) {
    Floats y[4];
    Floats columns[8];
    Floats out[kPositions];
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) Load(pixels[i] + slice.first + c, y[i]);
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) ApplyTransposedA<2>(y + i, columns + i);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) ApplyTransposedA<1>(columns + 2 * i, out + 4 * i);
    StorePositions(out, kTileBlock, m + InGroup(c));
  }
}

// pixels: null where the tile hangs over.
SSL_INLINE void TransformOutputTile(const float* m, int64_t channels, float* const* pixels) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Floats products[kPositions];
    Floats columns[8];
    Floats y[4];
    LoadPositions(m + InGroup(c), kTileBlock, products);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) ApplyA<4, 4>(products + i, columns + i);
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) ApplyA<1, 1>(columns + 4 * i, y + 2 * i);
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      if (pixels[i] != nullptr) Store(y[i], pixels[i] + c);
    }
  }
}

// The sums of a group of tiles for 32 output channels: one position of v, u and m.
SSL_INLINE void MultiplyGroup(const float* v, const float* u, int64_t in, float* m) {
  Floats low[kWinogradGroup] = {};
  Floats high[kWinogradGroup] = {};
  for (int64_t first = 0; first < in; first += kChannels) {
    for (int64_t c = 0; c < kChannels; ++c) {
      Floats low_kernel, high_kernel;
      Load(u + c * kChannels, low_kernel);
      Load(u + c * kChannels + kLanes, high_kernel);
#pragma GCC unroll 12
      for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
        const float value = v[tile * kChannels + c];
        low[tile] += value * low_kernel;
        high[tile] += value * high_kernel;
      }
    }
    v += kPositions * kTileBlock;
    u += kPositions * kKernelBlock;
  }
#pragma GCC unroll 12
  for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
    Store(low[tile], m + tile * kChannels);
    Store(high[tile], m + tile * kChannels + kLanes);
  }
}

// Input channels whose sums over tiles are in registers at a time.
constexpr int64_t kRows = 8;

// u += v^T m for kRows input and 32 output channels of one position; the groups lie v_step and m_step apart.
SSL_INLINE void AddProductsOfRows(const float* v, int64_t v_step, const float* m, int64_t m_step, int64_t groups,
                                  float* u) {
  Floats low[kRows];
  Floats high[kRows];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
    Load(u + row * kChannels, low[row]);
    Load(u + row * kChannels + kLanes, high[row]);
  }
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
      Floats low_gradient, high_gradient;
      Load(m + tile * kChannels, low_gradient);
      Load(m + tile * kChannels + kLanes, high_gradient);
#pragma GCC unroll 8
      for (int64_t row = 0; row < kRows; ++row) {
        const float value = v[tile * kChannels + row];
        low[row] += value * low_gradient;
        high[row] += value * high_gradient;
      }
    }
    v += v_step;
    m += m_step;
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
    Store(low[row], u + row * kChannels);
    Store(high[row], u + row * kChannels + kLanes);
  }
}

}  // namespace

bool HasWinogradKernels() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

int64_t WinogradTileFloats(int64_t groups, int64_t channels) { return groups * kPositions * kWinogradGroup * channels; }

int64_t WinogradKernelFloats(int64_t in, int64_t out) { return kPositions * in * out; }

SSL_AVX512 void TransformKernels(const float* kernels, bool rotated, int64_t in, int64_t out, float* u) {
  for (int64_t row = 0; row < in; ++row) {
    for (int64_t c = 0; c < out; c += kLanes) {
      Floats g[9];
      Floats columns[12];
      Floats positions[kPositions];
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < 9; ++tap) Load(kernels + ((rotated ? 8 - tap : tap) * in + row) * out + c, g[tap]);
#pragma GCC unroll 3
      for (int64_t i = 0; i < 3; ++i) ApplyG<3>(g + i, columns + i);
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) ApplyG<1>(columns + 3 * i, positions + 4 * i);
      const int64_t block = c / kChannels * (in / kChannels) + row / kChannels;
      StorePositions(positions, kKernelBlock,
                     u + block * kPositions * kKernelBlock + row % kChannels * kChannels + c % kChannels);
    }
  }
}

SSL_AVX512 void TransformInput(const float* maps, const WinogradMap& shape, WinogradTiles tiles, float* v) {
  const float* pixels[kPositions];
  TileWalk tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.Groups() * kWinogradGroup; ++i, tile.Next()) {
    if (i < tiles.count) {
      tile.FindPixels<4, 1>(maps, kPadding, pixels);
      tile.PrefetchBelow(maps);
    } else {
      for (const float*& pixel : pixels) pixel = kPadding;
    }
    const int64_t group = i / kWinogradGroup;
    TransformInputTile(pixels, shape.channels,
                       v + WinogradTileFloats(group, shape.channels) + i % kWinogradGroup * kChannels);
  }
}

SSL_AVX512 void MultiplyTiles(const float* v, const float* u, int64_t groups, int64_t in, int64_t out, float* m) {
  for (int64_t c = 0; c < out; c += kChannels) {
    for (int64_t p = 0; p < kPositions; ++p) {
      for (int64_t group = 0; group < groups; ++group) {
        MultiplyGroup(v + WinogradTileFloats(group, in) + p * kTileBlock,
                      u + WinogradKernelFloats(in, c) + p * kKernelBlock, in,
                      m + WinogradTileFloats(group, out) + InGroup(c) + p * kTileBlock);
      }
    }
  }
}

SSL_AVX512 void TransformOutput(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps) {
  float* pixels[4];
  TileWalk tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.count; ++i, tile.Next()) {
    const float* const group = m + WinogradTileFloats(i / kWinogradGroup, shape.channels);
    tile.FindPixels<2, 0, float>(maps, nullptr, pixels);
    TransformOutputTile(group + i % kWinogradGroup * kChannels, shape.channels, pixels);
  }
}

SSL_AVX512 void TransformOutputGradient(const float* maps, const WinogradMap& shape, WinogradTiles tiles,
                                        WinogradSlice slice, float* m) {
  const float* pixels[4];
  TileWalk tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.Groups() * kWinogradGroup; ++i, tile.Next()) {
    if (i < tiles.count) {
      tile.FindPixels<2, 0>(maps, kPadding, pixels);
    } else {
      for (const float*& pixel : pixels) pixel = kPadding;
    }
    const int64_t group = i / kWinogradGroup;
    TransformGradientTile(pixels, slice, m + WinogradTileFloats(group, slice.count) + i % kWinogradGroup * kChannels);
  }
}

SSL_AVX512 void AddTileProducts(const float* v, const float* m, int64_t groups, int64_t in, int64_t out, float* u) {
  for (int64_t c = 0; c < out; c += kChannels) {
    for (int64_t row = 0; row < in; row += kChannels) {
      for (int64_t p = 0; p < kPositions; ++p) {
        float* const block = u + WinogradKernelFloats(in, c) + (row / kChannels * kPositions + p) * kKernelBlock;
        for (int64_t i = 0; i < kChannels; i += kRows) {
          AddProductsOfRows(v + InGroup(row) + p * kTileBlock + i, WinogradTileFloats(1, in),
                            m + InGroup(c) + p * kTileBlock, WinogradTileFloats(1, out), groups, block + i * kChannels);
        }
      }
    }
  }
}

SSL_AVX512 void TransformKernelGradient(const float* u, int64_t in, int64_t out, WinogradSlice slice, float* kernels) {
  for (int64_t row = 0; row < in; ++row) {
    for (int64_t c = 0; c < slice.count; c += kLanes) {
      Floats positions[kPositions];
      Floats columns[12];
      Floats g[9];
      const int64_t block = c / kChannels * (in / kChannels) + row / kChannels;
      LoadPositions(u + block * kPositions * kKernelBlock + row % kChannels * kChannels + c % kChannels, kKernelBlock,
                    positions);
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) ApplyTransposedG<4>(positions + i, columns + i);
#pragma GCC unroll 3
      for (int64_t i = 0; i < 3; ++i) ApplyTransposedG<1>(columns + 4 * i, g + 3 * i);
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < 9; ++tap) Store(g[tap], kernels + (tap * in + row) * out + slice.first + c);
    }
  }
}

}  // namespace ssl
