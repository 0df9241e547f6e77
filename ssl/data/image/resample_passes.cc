// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/resample_passes.h"

#include <algorithm>
#include <cstring>

#include "ssl/data/image/vectorize.h"

namespace ssl {
namespace {

// The half is added first: shifting then rounds.
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

// The horizontal pass works on tiles of at most so many rows, transposed: what lies side by side in memory then has the
// same weights, and the pass becomes a vertical one.
constexpr int kMostTileRows = 64;
// The side of the squares that are transposed at once.
constexpr int kBlock = 16;

// The rows of the tile for the next of `rows_left` rows; the last of them may be repeated in it.
int TileRows(int rows_left) { return rows_left <= 16 ? 16 : rows_left <= 32 ? 32 : kMostTileRows; }

// With more taps, sums are kept in memory between groups of so many.
constexpr int kTapGroup = 4;
constexpr int kMostTaps = 8;
// Values whose sums are kept at once.
constexpr int kSums = 512;

SSL_PIXEL_FUNCTION uint8_t ToPixel(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

template <int kTaps>
SSL_PIXEL_FUNCTION int32_t AddTaps(int32_t sum, const uint8_t* input, int64_t stride, const int32_t* weights) {
  for (int t = 0; t < kTaps; ++t) sum += input[t * stride] * weights[t];
  return sum;
}

// output[i] = sum over t of weights[t] * input[t * stride + i], for a number of taps that the compiler knows.
template <int kTaps>
SSL_PIXEL_FUNCTION void BlendFewTaps(PixelRows rows, const int32_t* weights, int64_t size, uint8_t* __restrict output) {
  int32_t w[kTaps];
  for (int t = 0; t < kTaps; ++t) w[t] = weights[t];
  for (int64_t i = 0; i < size; ++i) output[i] = ToPixel(AddTaps<kTaps>(kHalf, rows.first + i, rows.stride, w));
}

SSL_PIXEL_FUNCTION void BlendManyTaps(PixelRows rows, const int32_t* weights, int taps, int64_t size,
                                      uint8_t* __restrict output) {
  int32_t sums[kSums];
  for (int64_t begin = 0; begin < size; begin += kSums) {
    const int64_t count = std::min<int64_t>(size - begin, kSums);
    const uint8_t* input = rows.first + begin;
    for (int64_t i = 0; i < count; ++i) sums[i] = kHalf;
    int t = 0;
    for (; t + kTapGroup <= taps; t += kTapGroup, input += kTapGroup * rows.stride) {
      for (int64_t i = 0; i < count; ++i) {
        sums[i] = AddTaps<kTapGroup>(sums[i], input + i, rows.stride, weights + t);
      }
    }
    for (; t < taps; ++t, input += rows.stride) {
      for (int64_t i = 0; i < count; ++i) sums[i] += input[i] * weights[t];
    }
    for (int64_t i = 0; i < count; ++i) output[begin + i] = ToPixel(sums[i]);
  }
}

SSL_PIXEL_FUNCTION void Blend(PixelRows rows, const int32_t* weights, int taps, int64_t size, uint8_t* output) {
  switch (taps) {
    case 1:
      return BlendFewTaps<1>(rows, weights, size, output);
    case 2:
      return BlendFewTaps<2>(rows, weights, size, output);
    case 3:
      return BlendFewTaps<3>(rows, weights, size, output);
    case 4:
      return BlendFewTaps<4>(rows, weights, size, output);
    case 5:
      return BlendFewTaps<5>(rows, weights, size, output);
    case 6:
      return BlendFewTaps<6>(rows, weights, size, output);
    case 7:
      return BlendFewTaps<7>(rows, weights, size, output);
    case kMostTaps:
      return BlendFewTaps<kMostTaps>(rows, weights, size, output);
    default:
      return BlendManyTaps(rows, weights, taps, size, output);
  }
}

using Bytes [[gnu::vector_size(kBlock)]] = uint8_t;

// The bytes of a and b in turn: of their first halves, of their second halves.
SSL_PIXEL_FUNCTION void Interleave(const Bytes& a, const Bytes& b, Bytes* lower, Bytes* upper) {
  *lower = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  *upper = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Row r of the result is column r of the rows. Interleaving row r with row r + 8 moves each byte's place, a number of
// eight bits (row, column), round by one bit; four times exchange row and column.
SSL_PIXEL_FUNCTION void TransposeBlock(const uint8_t* const* rows, int64_t column, uint8_t* output, int64_t stride) {
  Bytes block[kBlock], next[kBlock];
  for (int r = 0; r < kBlock; ++r) std::memcpy(&block[r], rows[r] + column, kBlock);
  for (int r = 0; r < 8; ++r) Interleave(block[r], block[r + 8], &next[2 * r], &next[2 * r + 1]);
  for (int r = 0; r < 8; ++r) Interleave(next[r], next[r + 8], &block[2 * r], &block[2 * r + 1]);
  for (int r = 0; r < 8; ++r) Interleave(block[r], block[r + 8], &next[2 * r], &next[2 * r + 1]);
  for (int r = 0; r < 8; ++r) Interleave(next[r], next[r + 8], &block[2 * r], &block[2 * r + 1]);
  for (int r = 0; r < kBlock; ++r) std::memcpy(output + r * stride, &block[r], kBlock);
}

// `columns` bytes of each of the tile_rows rows become columns of the tile: byte x of row y is tile[x * tile_rows + y].
SSL_VECTORIZE
void RowsToTile(const uint8_t* const* rows, int tile_rows, int64_t columns, uint8_t* tile) {
  for (int first = 0; first < tile_rows; first += kBlock) {
    for (int64_t column = 0; column < columns; column += kBlock) {
      // The last block overlaps the one before it.
      const int64_t begin = std::min(column, columns - kBlock);
      TransposeBlock(rows + first, begin, tile + begin * tile_rows + first, tile_rows);
    }
  }
}

// The other way, into rows that lie `columns` bytes apart.
SSL_VECTORIZE
void TileToRows(const uint8_t* tile, int tile_rows, int64_t columns, uint8_t* rows) {
  for (int64_t column = 0; column < columns; column += kBlock) {
    const int64_t begin = std::min(column, columns - kBlock);
    const uint8_t* lines[kBlock];
    for (int i = 0; i < kBlock; ++i) lines[i] = tile + (begin + i) * tile_rows;
    for (int first = 0; first < tile_rows; first += kBlock) {
      TransposeBlock(lines, first, rows + first * columns + begin, columns);
    }
  }
}

template <int kTileRows>
SSL_PIXEL_FUNCTION void FilterTileOf(const uint8_t* tile, int channels, const FilterTaps& filter, uint8_t* output) {
  const int64_t pixel = static_cast<int64_t>(channels) * kTileRows;
  const int32_t* weights = filter.weights;
  for (int x = 0; x < filter.out; ++x, weights += filter.taps) {
    const uint8_t* input = tile + filter.first[x] * pixel;
    for (int c = 0; c < channels; ++c, output += kTileRows) {
      Blend({input + c * kTileRows, pixel}, weights, filter.taps, kTileRows, output);
    }
  }
}

SSL_VECTORIZE
void FilterTile(const uint8_t* tile, int tile_rows, int channels, const FilterTaps& filter, uint8_t* output) {
  switch (tile_rows) {
    case 16:
      return FilterTileOf<16>(tile, channels, filter, output);
    case 32:
      return FilterTileOf<32>(tile, channels, filter, output);
    default:
      return FilterTileOf<kMostTileRows>(tile, channels, filter, output);
  }
}

SSL_VECTORIZE
void BlendRows(PixelRows rows, const int32_t* weights, int taps, int64_t size, uint8_t* output) {
  Blend(rows, weights, taps, size, output);
}

int64_t WholeBlocks(int64_t size) { return std::max<int64_t>(size, kBlock); }

}  // namespace

void FilterWidth(PixelRows source, int height, int channels, const FilterTaps& filter, std::vector<uint8_t>* buffer,
                 uint8_t* result) {
  const int64_t in_size = static_cast<int64_t>(filter.in) * channels;
  const int64_t out_size = static_cast<int64_t>(filter.out) * channels;
  const int64_t in_columns = WholeBlocks(in_size);
  const int64_t out_columns = WholeBlocks(out_size);
  // The tile, the tile of results, their rows where they cannot go to `result` directly, and rows too short for a
  // block.
  const size_t needed = kMostTileRows * (in_columns + 2 * out_columns + kBlock);
  if (buffer->size() < needed) buffer->resize(needed);
  uint8_t* tile = buffer->data();
  uint8_t* filtered = tile + kMostTileRows * in_columns;
  uint8_t* spare = filtered + kMostTileRows * out_columns;
  uint8_t* short_rows = spare + kMostTileRows * out_columns;
  for (int y = 0; y < height; y += kMostTileRows) {
    const int rows_left = std::min(height - y, kMostTileRows);
    const int tile_rows = TileRows(rows_left);
    const uint8_t* rows[kMostTileRows];
    for (int r = 0; r < tile_rows; ++r) {
      rows[r] = source.first + (y + std::min(r, rows_left - 1)) * source.stride;
      if (in_size < kBlock) {
        std::memcpy(short_rows + r * kBlock, rows[r], in_size);
        rows[r] = short_rows + r * kBlock;
      }
    }
    RowsToTile(rows, tile_rows, in_columns, tile);
    FilterTile(tile, tile_rows, channels, filter, filtered);
    if (rows_left == tile_rows && out_size == out_columns) {
      TileToRows(filtered, tile_rows, out_size, result + y * out_size);
      continue;
    }
    TileToRows(filtered, tile_rows, out_columns, spare);
    for (int r = 0; r < rows_left; ++r) {
      std::memcpy(result + (y + r) * out_size, spare + r * out_columns, out_size);
    }
  }
}

void FilterHeight(PixelRows source, int64_t row_size, const FilterTaps& filter, uint8_t* result) {
  for (int y = 0; y < filter.out; ++y) {
    const PixelRows window = {source.first + filter.first[y] * source.stride, source.stride};
    BlendRows(window, filter.weights + static_cast<int64_t>(y) * filter.taps, filter.taps, row_size,
              result + y * row_size);
  }
}

}  // namespace ssl
