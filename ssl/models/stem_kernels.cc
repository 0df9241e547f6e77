// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/stem_kernels.h"

#include <cstddef>

#include "ssl/models/winograd_forms.h"
#include "ssl/models/winograd_tiles.h"
#include "ssl/models/winograd_transform.h"

namespace ssl {

// F(3, 4), with the points of F(4, 3).
struct StemForm {
  static constexpr std::array<double, 5> kPoints = FourOutputs::kPoints;
};

template <>
inline constexpr size_t kTapsOf<StemForm> = 4;

namespace {

constexpr int64_t kChannels = kWinogradChannels;
constexpr int64_t kTaps = kTapsOf<StemForm>;
constexpr int64_t kInputs = kInputsOf<StemForm>;
// A tile's inputs begin so many folded pixels before its outputs.
constexpr int64_t kBefore = 2;
// Pixels that tiles read beyond their outputs, on both sides together.
constexpr int64_t kAround = kInputs - kStemOutputs;
constexpr int64_t kFolded = kFoldedChannels;
constexpr int64_t kFoldedRow = kLanes / 2;
// Of one position.
constexpr int64_t kFoldedBlock = kWinogradGroup * kLanes;
constexpr int64_t kStemBlock = kFolded * kChannels;
static_assert(kSquareOf<StemForm> == kStemPositions);
static_assert(kOutputsOf<StemForm> == kStemOutputs);

int64_t RowPixels(const StemFold& fold) { return fold.TileColumns() * kStemOutputs + kAround; }

// Where a channel of a folded pixel lies in its 16 floats.
constexpr int64_t LaneOf(int64_t channel) { return channel / (kFolded / 2) * kFoldedRow + channel % (kFolded / 2); }

// The number of the weight, [3, 7, 7], that a folded tap has for a channel of a folded pixel; -1 for none.
int64_t WeightOf(int64_t tap, int64_t channel) {
  const int64_t row = 2 * (tap / kTaps) - 1 + channel / (kFolded / 2);
  const int64_t column = 2 * (tap % kTaps) - 1 + channel % (kFolded / 2) / kImageChannels;
  if (row < 0 || column < 0) return -1;
  return (channel % kImageChannels * kStemKernel + row) * kStemKernel + column;
}

// The values of a tile of folded pixels.
struct AtFolded {
  const float* first;
  int64_t row_floats;

  SSL_INLINE void Read(size_t i, Floats& value) const {
    Load(first + static_cast<int64_t>(i) / kInputs * row_floats + static_cast<int64_t>(i) % kInputs * kLanes, value);
  }
};

// The sums of a group of tiles for 32 output channels: one position of v, u and m.
SSL_INLINE void MultiplyGroup(const float* v, const float* u, float* m) {
  Floats low[kWinogradGroup] = {};
  Floats high[kWinogradGroup] = {};
  for (int64_t c = 0; c < kFolded; ++c) {
    Floats low_kernel, high_kernel;
    Load(u + c * kChannels, low_kernel);
    Load(u + c * kChannels + kLanes, high_kernel);
#pragma GCC unroll 12
    for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
      const float value = v[tile * kLanes + LaneOf(c)];
      low[tile] += value * low_kernel;
      high[tile] += value * high_kernel;
    }
  }
#pragma GCC unroll 12
  for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
    Store(low[tile], m + tile * kChannels);
    Store(high[tile], m + tile * kChannels + kLanes);
  }
}

// u += v^T m for one position and 32 output channels; the groups lie v_step and m_step apart. The sum of these groups
// is rounded before it meets that of all others, which is larger.
SSL_INLINE void AddProducts(const float* v, int64_t v_step, const float* m, int64_t m_step, int64_t groups, float* u) {
  Floats low[kFolded] = {};
  Floats high[kFolded] = {};
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
      Floats low_columns, high_columns;
      Load(m + tile * kChannels, low_columns);
      Load(m + tile * kChannels + kLanes, high_columns);
#pragma GCC unroll 12
      for (int64_t c = 0; c < kFolded; ++c) {
        const float value = v[tile * kLanes + LaneOf(c)];
        low[c] += value * low_columns;
        high[c] += value * high_columns;
      }
    }
    v += v_step;
    m += m_step;
  }
#pragma GCC unroll 12
  for (int64_t c = 0; c < kFolded; ++c) {
    Floats low_sum, high_sum;
    Load(u + c * kChannels, low_sum);
    Load(u + c * kChannels + kLanes, high_sum);
    Store(low_sum + low[c], u + c * kChannels);
    Store(high_sum + high[c], u + c * kChannels + kLanes);
  }
}

// Where the kernels of a position begin, for 32 output channels from `out` on.
SSL_INLINE int64_t InStemKernels(int64_t out, int64_t position) {
  return (out / kChannels * kStemPositions + position) * kStemBlock;
}

}  // namespace

int64_t StemFold::Floats() const { return (TileRows() * kStemOutputs + kAround) * RowPixels(*this) * kLanes; }

int64_t StemTileFloats(int64_t groups) { return groups * kStemPositions * kFoldedBlock; }
int64_t StemKernelFloats(int64_t out) { return kStemPositions * kFolded * out; }

void FoldImage(const StemImage& image, const StemFold& fold, float* folded) {
  const auto [channel_stride, row_stride, column_stride] = image.strides;
  for (int64_t row = 0; row < image.height; ++row) {
    float* const to_row = folded + (row / 2 + kBefore) * RowPixels(fold) * kLanes + row % 2 * kFoldedRow;
    const float* const from_row = image.floats + row * row_stride;
    for (int64_t column = 0; column < image.width; ++column) {
      float* const to = to_row + (column / 2 + kBefore) * kLanes + column % 2 * kImageChannels;
      const float* const from = from_row + column * column_stride;
      for (int64_t c = 0; c < kImageChannels; ++c) to[c] = from[c * channel_stride];
    }
  }
}

SSL_AVX512 void TransformStemKernels(const float* weight, int64_t out, float* u) {
  alignas(64) float taps[kTaps * kTaps * kLanes];
  for (int64_t c = 0; c < kFolded; ++c) {
    for (int64_t first = 0; first < out; first += kLanes) {
      for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
        const int64_t number = WeightOf(tap, c);
        for (int64_t i = 0; i < kLanes; ++i) {
          const float* const kernel = weight + (first + i) * kImageChannels * kStemKernel * kStemKernel;
          taps[tap * kLanes + i] = number < 0 ? 0.0f : kernel[number];
        }
      }
      float* const to = u + InStemKernels(first, 0) + c * kChannels + first % kChannels;
      Transform<KernelMatrix<StemForm>>(AtStride<const float>{taps, kLanes}, AtStride<float>{to, kStemBlock});
    }
  }
}

SSL_AVX512 void TransformStemInput(const float* folded, const StemFold& fold, WinogradTiles tiles, float* v) {
  const int64_t row_floats = RowPixels(fold) * kLanes;
  const Floats zero = {};
  for (int64_t i = 0; i < tiles.Groups() * kWinogradGroup; ++i) {
    float* const to = v + StemTileFloats(i / kWinogradGroup) + i % kWinogradGroup * kLanes;
    if (i >= tiles.count) {
      for (int64_t p = 0; p < kStemPositions; ++p) Store(zero, to + p * kFoldedBlock);
      continue;
    }
    const int64_t tile = tiles.first + i;
    const int64_t row = tile % fold.Tiles() / fold.TileColumns();
    const int64_t column = tile % fold.TileColumns();
    const float* const from =
        folded + tile / fold.Tiles() * fold.Floats() + row * kStemOutputs * row_floats + column * kStemOutputs * kLanes;
    Transform<InputMatrix<StemForm>>(AtFolded{from, row_floats}, AtStride<float>{to, kFoldedBlock});
  }
}

SSL_AVX512 void MultiplyStemTiles(const float* v, const float* u, int64_t groups, int64_t out, float* m) {
  const int64_t m_floats = kStemPositions * kWinogradGroup * out;  // of a group
  for (int64_t c = 0; c < out; c += kChannels) {
    for (int64_t p = 0; p < kStemPositions; ++p) {
      for (int64_t group = 0; group < groups; ++group) {
        MultiplyGroup(v + StemTileFloats(group) + p * kFoldedBlock, u + InStemKernels(c, p),
                      m + group * m_floats + InGroup(kStemPositions, c) + p * kTileBlock);
      }
    }
  }
}

void TransformStemOutput(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps) {
  TransformOutput<StemForm>(m, shape, tiles, maps);
}

void TransformStemOutputGradient(const float* maps, const WinogradMap& shape, WinogradTiles tiles, float* m) {
  TransformOutputGradient<StemForm>(maps, shape, tiles, {0, shape.channels}, m);
}

SSL_AVX512 void AddStemProducts(const float* v, const float* m, int64_t groups, int64_t out, float* u) {
  const int64_t m_floats = kStemPositions * kWinogradGroup * out;
  for (int64_t c = 0; c < out; c += kChannels) {
    for (int64_t p = 0; p < kStemPositions; ++p) {
      AddProducts(v + p * kFoldedBlock, StemTileFloats(1), m + InGroup(kStemPositions, c) + p * kTileBlock, m_floats,
                  groups, u + InStemKernels(c, p));
    }
  }
}

SSL_AVX512 void TransformStemGradient(const float* u, int64_t out, float* weight) {
  alignas(64) float taps[kTaps * kTaps * kLanes];
  for (int64_t c = 0; c < kFolded; ++c) {
    for (int64_t first = 0; first < out; first += kLanes) {
      const float* const from = u + InStemKernels(first, 0) + c * kChannels + first % kChannels;
      Transform<TransposeOf<KernelMatrix<StemForm>>>(AtStride<const float>{from, kStemBlock},
                                                     AtStride<float>{taps, kLanes});
      for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
        const int64_t number = WeightOf(tap, c);
        for (int64_t i = 0; i < kLanes && number >= 0; ++i) {
          weight[(first + i) * kImageChannels * kStemKernel * kStemKernel + number] = taps[tap * kLanes + i];
        }
      }
    }
  }
}

}  // namespace ssl
