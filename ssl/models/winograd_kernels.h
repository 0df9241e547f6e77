// SPDX-License-Identifier: Apache-2.0
//
// The parts of a 3x3 convolution with stride 1 and padding 1 by Winograd's minimal filtering F(2x2, 3x3) (Lavin and
// Gray, arXiv 1509.09308, section 4.1), on plain arrays of float32. A tile Y of 2x2 output pixels comes from a tile d
// of 4x4 input pixels and a kernel g of 3x3 taps:
//
//   Y = A^T [U * V] A,  U = G g G^T,  V = B^T d B
//
// where * multiplies the 16 positions one by one: 16 products where the definition has 36. Input channels are summed
// before A is applied, so that each position is a matrix product, M[tiles, out] = V[tiles, in] U[in, out]. The gradient
// of g is the transpose of all that: G^T [sum over tiles of V * (A dY A^T)] G.
//
// Maps are [maps, height, width, channels], row-major, with channels in multiples of kWinogradChannels. Their tiles are
// numbered row by row, map after map; at the end of an odd side a tile hangs over. Transformed tiles stand in groups,
// as [groups, channels / 32, 16 positions, 12 tiles, 32 channels], and transformed kernels as
// [out / 32, in / 32, 16 positions, 32 in, 32 out]: what a product reads follows in memory.
//
// All functions need HasWinogradKernels(), and are thread-safe. Sums have one order: tile by tile, channel by channel.
#ifndef SSL_MODELS_WINOGRAD_KERNELS_H_
#define SSL_MODELS_WINOGRAD_KERNELS_H_

#include <cstdint>

namespace ssl {

inline constexpr int64_t kWinogradPositions = 16;
inline constexpr int64_t kWinogradChannels = 32;
inline constexpr int64_t kMostWinogradChannels = 256;
// Tiles of a group: with 32 channels each, their sums fill 24 of the 32 registers of AVX-512.
inline constexpr int64_t kWinogradGroup = 12;

// Whether this machine has AVX-512, which the functions are compiled for.
bool HasWinogradKernels();

struct WinogradMap {
  int64_t height;
  int64_t width;
  int64_t channels;  // at most kMostWinogradChannels

  int64_t TileColumns() const { return (width + 1) / 2; }
  int64_t TilesPerMap() const { return (height + 1) / 2 * TileColumns(); }
};

// `count` tiles from `first` on. Their last group is filled up with zeros.
struct WinogradTiles {
  int64_t first;
  int64_t count;

  int64_t Groups() const { return (count + kWinogradGroup - 1) / kWinogradGroup; }
};

// Some channels of a map, in multiples of kWinogradChannels.
struct WinogradSlice {
  int64_t first;
  int64_t count;
};

// Floats of `groups` groups of transformed tiles, and of transformed kernels.
int64_t WinogradTileFloats(int64_t groups, int64_t channels);
int64_t WinogradKernelFloats(int64_t in, int64_t out);

// kernels: [9 taps, in, out], read in the reverse order of taps with `rotated`.
void TransformKernels(const float* kernels, bool rotated, int64_t in, int64_t out, float* u);

// V of the tiles.
void TransformInput(const float* maps, const WinogradMap& shape, WinogradTiles tiles, float* v);

// m = v u.
void MultiplyTiles(const float* v, const float* u, int64_t groups, int64_t in, int64_t out, float* m);

// Writes the tiles' pixels.
void TransformOutput(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps);

// A dY A^T of the slice's channels, from the gradient dY of the output.
void TransformOutputGradient(const float* maps, const WinogradMap& shape, WinogradTiles tiles, WinogradSlice slice,
                             float* m);

// u += v^T m.
void AddTileProducts(const float* v, const float* m, int64_t groups, int64_t in, int64_t out, float* u);

// kernels: [9 taps, in, out], of whose last dimension the slice is written, from u of the slice.
void TransformKernelGradient(const float* u, int64_t in, int64_t out, WinogradSlice slice, float* kernels);

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_KERNELS_H_
