// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/winograd_kernels.h"

#include <algorithm>
#include <cstddef>

#include "ssl/models/winograd_forms.h"
#include "ssl/models/winograd_strided_forms.h"
#include "ssl/models/winograd_tiles.h"
#include "ssl/models/winograd_transform.h"

namespace ssl {
namespace {

constexpr int64_t kChannels = kWinogradChannels;
// Transformed kernels of one position.
constexpr int64_t kKernelBlock = kChannels * kChannels;

// Where the channels `row` and `column` of transformed kernels lie.
SSL_INLINE int64_t InKernels(int64_t positions, int64_t in, int64_t row, int64_t column) {
  const int64_t block = column / kChannels * (in / kChannels) + row / kChannels;
  return block * positions * kKernelBlock + row % kChannels * kChannels + column % kChannels;
}

// taps: [9, 16 input, 16 output channels] of weight from `row` and `column` on.
SSL_INLINE void TransposeTaps(const float* weight, int64_t in, int64_t row, int64_t column, float* taps) {
  for (int64_t c = 0; c < kLanes; ++c) {
    for (int64_t tap = 0; tap < 9; ++tap) {
      const float* const from = weight + ((column + c) * 9 + tap) * in + row;
      for (int64_t i = 0; i < kLanes; ++i) taps[(tap * kLanes + i) * kLanes + c] = from[i];
    }
  }
}

template <typename Form>
SSL_AVX512 void TransformKernels(const float* weight, int64_t out, int64_t in, WinogradSlice rows, float* u) {
  alignas(64) float taps[9 * kLanes * kLanes];
  for (int64_t c = 0; c < out; c += kLanes) {
    for (int64_t row = rows.first; row < rows.first + rows.count; row += kLanes) {
      TransposeTaps(weight, in, row, c, taps);
      for (int64_t i = 0; i < kLanes; ++i) {
        const AtStride<const float> from = {taps + i * kLanes, kLanes * kLanes};
        Transform<KernelMatrix<Form>>(from,
                                      AtStride<float>{u + InKernels(kSquareOf<Form>, in, row + i, c), kKernelBlock});
      }
    }
  }
}

template <typename Form>
SSL_AVX512 void TransformRotatedKernels(const float* weight, int64_t out, int64_t in, WinogradSlice rows, float* u) {
  for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    for (int64_t c = 0; c < in; c += kLanes) {
      const AtStride<const float> from = {weight + (row * 9 + 8) * in + c, -in};
      Transform<KernelMatrix<Form>>(from, AtStride<float>{u + InKernels(kSquareOf<Form>, out, row, c), kKernelBlock});
    }
  }
}

template <typename Form>
SSL_AVX512 void TransformInput(const float* maps, const WinogradMap& shape, WinogradTiles tiles, WinogradSlice slice,
                               float* v) {
  constexpr int64_t kPositions = kSquareOf<Form>;
  const float* pixels[kInputsOf<Form> * kInputsOf<Form>];
  TileWalk<kInputStepOf<Form>> tile(shape, tiles.first);
  for (int64_t i = 0; i < tiles.Groups() * kWinogradGroup; ++i, tile.Next()) {
    if (i < tiles.count) {
      tile.template FindPixels<kInputsOf<Form>, kBeforeOf<Form>>(maps, kNoPixels, pixels);
      tile.PrefetchBelow(maps, slice);
    } else {
      for (const float*& pixel : pixels) pixel = kNoPixels;
    }
    float* const to =
        v + i / kWinogradGroup * kPositions * kWinogradGroup * slice.count + i % kWinogradGroup * kChannels;
    for (int64_t c = 0; c < slice.count; c += kLanes) {
      Transform<InputMatrix<Form>>(AtPixels<const float>{pixels, slice.first + c},
                                   AtStride<float>{to + InGroup(kPositions, c), kTileBlock});
    }
  }
}

template <typename Form>
SSL_AVX512 void TransformKernelGradient(const float* u, WinogradSlice out, WinogradSlice in, int64_t all_in,
                                        float* weight) {
  for (int64_t row = 0; row < out.count; ++row) {
    for (int64_t c = 0; c < in.count; c += kLanes) {
      const AtStride<const float> from = {u + InKernels(kSquareOf<Form>, out.count, row, c), kKernelBlock};
      float* const to = weight + (out.first + row) * 9 * all_in + in.first + c;
      Transform<TransposeOf<KernelMatrix<Form>>>(from, AtStride<float>{to, all_in});
    }
  }
}

// The sums of a group of tiles for 32 output channels: one position of v, u and m. What 32 input channels have lies far
// from what the next have, which the machine does not foresee: it is asked for meanwhile, at last that of the next
// call.
SSL_INLINE void MultiplyGroup(int64_t positions, const float* v, const float* u, int64_t in, float* m,
                              const float* next_v, const float* next_u) {
  Floats low[kWinogradGroup] = {};
  Floats high[kWinogradGroup] = {};
  for (int64_t first = 0; first < in; first += kChannels) {
    const bool last = first + kChannels == in;
    const float* const ahead_v = last ? next_v : v + positions * kTileBlock;
    const float* const ahead_u = last ? next_u : u + positions * kKernelBlock;
    for (int64_t c = 0; c < kChannels; ++c) {
      __builtin_prefetch(ahead_u + c * kChannels);
      __builtin_prefetch(ahead_u + c * kChannels + kLanes);
      __builtin_prefetch(ahead_v + c * kWinogradGroup);
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
    v += positions * kTileBlock;
    u += positions * kKernelBlock;
  }
#pragma GCC unroll 12
  for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
    Store(low[tile], m + tile * kChannels);
    Store(high[tile], m + tile * kChannels + kLanes);
  }
}

// Channels whose sums over tiles are in registers at a time.
constexpr int64_t kRows = 8;

// u += a^T b for kRows and 32 channels of one position; the groups lie a_step and b_step apart. The sum of these groups
// is rounded before it meets that of all others, which is larger.
SSL_INLINE void AddProductsOfRows(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t groups,
                                  float* u) {
  Floats low[kRows] = {};
  Floats high[kRows] = {};
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t tile = 0; tile < kWinogradGroup; ++tile) {
      Floats low_columns, high_columns;
      Load(b + tile * kChannels, low_columns);
      Load(b + tile * kChannels + kLanes, high_columns);
#pragma GCC unroll 8
      for (int64_t row = 0; row < kRows; ++row) {
        const float value = a[tile * kChannels + row];
        low[row] += value * low_columns;
        high[row] += value * high_columns;
      }
    }
    a += a_step;
    b += b_step;
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
    Floats low_sum, high_sum;
    Load(u + row * kChannels, low_sum);
    Load(u + row * kChannels + kLanes, high_sum);
    Store(low_sum + low[row], u + row * kChannels);
    Store(high_sum + high[row], u + row * kChannels + kLanes);
  }
}

// OfInput: the form of the gradient of the input.
template <typename Form, typename OfInput = Form>
constexpr WinogradForm MakeForm() {
  return {kOutputsOf<Form>,
          kSquareOf<Form>,
          {&TransformKernels<Form>, &TransformInput<Form>, &TransformOutput<Form>},
          {&TransformRotatedKernels<OfInput>, &TransformInput<OfInput>, &TransformOutput<OfInput>},
          &TransformOutputGradient<Form>,
          &TransformKernelGradient<Form>};
}

template <typename Pairs>
constexpr WinogradForm MakeStridedForm() {
  return MakeForm<Strided<Pairs>, StridedGradient<Pairs>>();
}

}  // namespace

const std::array<WinogradForm, 4> kWinogradForms = {MakeForm<FourOutputs>(), MakeForm<ThreeOutputs>(),
                                                    MakeForm<TwoOutputs>(), MakeForm<WholePair>()};

const std::array<WinogradForm, 2> kStridedWinogradForms = {MakeStridedForm<ThreeOutputsOfPairs>(),
                                                           MakeStridedForm<TwoOutputsOfPairs>()};

bool HasWinogradKernels() {
#if SSL_HAS_AVX512
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

SSL_AVX512 void MultiplyTiles(int64_t positions, const float* v, const float* u, int64_t groups, int64_t in,
                              int64_t out, float* m) {
  const int64_t group_floats = positions * kWinogradGroup;  // of a channel
  // Position by position: what tiles have of one is small enough to stay in the first caches for all kernels.
  const int64_t columns = out / kChannels;
  const int64_t calls = positions * columns * groups;
  const auto group_of = [=](int64_t call) { return call % groups; };
  const auto column_of = [=](int64_t call) { return call / groups % columns * kChannels; };
  const auto position_of = [=](int64_t call) { return call / groups / columns; };
  const auto v_of = [=](int64_t call) {
    return v + group_of(call) * group_floats * in + position_of(call) * kTileBlock;
  };
  const auto u_of = [=](int64_t call) {
    return u + InKernels(positions, in, 0, column_of(call)) + position_of(call) * kKernelBlock;
  };
  for (int64_t call = 0; call < calls; ++call) {
    const int64_t next = std::min(call + 1, calls - 1);
    float* const to = m + group_of(call) * group_floats * out + InGroup(positions, column_of(call));
    MultiplyGroup(positions, v_of(call), u_of(call), in, to + position_of(call) * kTileBlock, v_of(next), u_of(next));
  }
}

SSL_AVX512 void AddTileProducts(int64_t positions, const float* a, const float* b, int64_t groups, int64_t rows,
                                int64_t columns, float* u) {
  const int64_t group_floats = positions * kWinogradGroup;
  for (int64_t c = 0; c < columns; c += kChannels) {
    for (int64_t row = 0; row < rows; row += kChannels) {
      for (int64_t p = 0; p < positions; ++p) {
        float* const block = u + InKernels(positions, rows, row, c) + p * kKernelBlock;
        for (int64_t i = 0; i < kChannels; i += kRows) {
          AddProductsOfRows(a + InGroup(positions, row) + p * kTileBlock + i, group_floats * rows,
                            b + InGroup(positions, c) + p * kTileBlock, group_floats * columns, groups,
                            block + i * kChannels);
        }
      }
    }
  }
}

}  // namespace ssl
