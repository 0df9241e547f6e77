// SPDX-License-Identifier: Apache-2.0
//
// The parts of a 3x3 convolution with padding 1 by Winograd's minimal filtering F(m x m, 3x3) (Lavin and Gray, arXiv
// 1509.09308, section 4.1), on plain arrays of float32. With stride 1 a tile Y of m x m output pixels comes from a tile
// d of (m + 2)^2 input pixels and a kernel g of 3x3 taps:
//
//   Y = A^T [U * V] A,  U = G g G^T,  V = B^T d B
//
// where * multiplies the (m + 2)^2 positions one by one: 4, 2.8 and 2.25 times fewer products than the definition has,
// for m = 4, 3 and 2. Input channels are summed before A is applied, so that each position is a matrix product,
// M[tiles, out] = V[tiles, in] U[in, out]. The gradient of g is the transpose of all that:
// G^T [sum over tiles of V * (A dY A^T)] G. With stride 2 a tile d has (2 m + 1)^2 pixels, and as many positions
// (winograd_strided_forms.h): 1.65 and 1.44 times fewer products for m = 3 and 2.
//
// Maps are [maps, height, width, channels], row-major, with channels in multiples of kWinogradChannels. Their tiles are
// numbered row by row, map after map; at the end of a side a tile may hang over. Transformed tiles stand in groups,
// as [groups, channels / 32, positions, 12 tiles, 32 channels], and transformed kernels as
// [out / 32, in / 32, positions, 32 in, 32 out]: what a product reads follows in memory.
//
// All functions need HasWinogradKernels(), and are thread-safe. Sums have one order: tile by tile, channel by channel.
#ifndef SSL_MODELS_WINOGRAD_KERNELS_H_
#define SSL_MODELS_WINOGRAD_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "ssl/models/winograd_shapes.h"

namespace ssl {

// Whether this machine has AVX-512, and the functions are compiled for it.
bool HasWinogradKernels();

// From maps to maps: M of V, by kernels of one direction.
struct WinogradPass {
  // weight: [out, 9 taps, in]. Writes the slice of U's rows.
  void (*transform_kernels)(const float* weight, int64_t out, int64_t in, WinogradSlice rows, float* u);

  // V of the tiles' slice of channels.
  void (*transform_input)(const float* maps, const WinogradMap& shape, WinogradTiles tiles, WinogradSlice slice,
                          float* v);

  // Writes the tiles' pixels.
  void (*transform_output)(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps);
};

// Functions for one m and stride.
struct WinogradForm {
  int64_t outputs;    // of a side of a tile: m
  int64_t positions;  // products of a tile

  // map: of the output. A tile of the input, or of its gradient, belongs to that of the output with its number.
  int64_t TilesOf(const WinogradMap& map) const {
    return ((map.height + outputs - 1) / outputs) * ((map.width + outputs - 1) / outputs);
  }
  // Floats of `groups` groups of transformed tiles, and of transformed kernels.
  int64_t TileFloats(int64_t groups, int64_t channels) const { return groups * positions * kWinogradGroup * channels; }
  int64_t KernelFloats(int64_t in, int64_t out) const { return positions * in * out; }

  WinogradPass forward;         // U: [in, out]
  WinogradPass input_gradient;  // from the gradient of the output; U: [out, in], of kernels turned by half

  // A dY A^T of the slice's channels, from the gradient dY of the output.
  void (*transform_output_gradient)(const float* maps, const WinogradMap& shape, WinogradTiles tiles,
                                    WinogradSlice slice, float* m);

  // Writes the slices of weight, [out, 9 taps, in], from u [out, in] of the slices.
  void (*transform_kernel_gradient)(const float* u, WinogradSlice out, WinogradSlice in, int64_t all_in, float* weight);
};

// With stride 1, by m: 4, 3, 2. The last one, of 9 positions, takes maps of 2x2 pixels alone, each of which is a tile
// with nothing around it.
extern const std::array<WinogradForm, 4> kWinogradForms;
inline constexpr size_t kWholeMapsForm = 3;

// With stride 2, by m: 3, 2.
extern const std::array<WinogradForm, 2> kStridedWinogradForms;

// m = v u.
void MultiplyTiles(int64_t positions, const float* v, const float* u, int64_t groups, int64_t in, int64_t out,
                   float* m);

// u += a^T b, of tiles [.., rows] and [.., columns].
void AddTileProducts(int64_t positions, const float* a, const float* b, int64_t groups, int64_t rows, int64_t columns,
                     float* u);

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_KERNELS_H_
