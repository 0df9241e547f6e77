// SPDX-License-Identifier: Apache-2.0
//
// The parts of a 7x7 convolution with stride 2 and padding 3 of images of three channels, on plain arrays of float32.
// A square of 2x2 pixels is one folded pixel of 12 channels; the convolution is one of 4x4 folded pixels without
// stride then (with zeros for the taps of an eighth row and column), which Winograd's filtering F(3x3, 4x4)
// (winograd_kernels.h) takes: 36 products for nine outputs, each of 12 channels, 48 for an output instead of 147.
//
// A folded pixel has 16 floats: two rows of two pixels, 6 floats each, and 2 zeros behind either row. Tiles are
// numbered and their outputs stand in groups as in winograd_kernels.h. Transformed tiles of folded pixels are
// [groups, 36 positions, 12 tiles, 16], transformed kernels [out / 32, 36, 12 channels, 32].
//
// All functions need HasWinogradKernels() (winograd_kernels.h), and are thread-safe.
#ifndef SSL_MODELS_STEM_KERNELS_H_
#define SSL_MODELS_STEM_KERNELS_H_

#include <array>
#include <cstdint>

#include "ssl/models/winograd_shapes.h"

namespace ssl {

inline constexpr int64_t kStemKernel = 7;
inline constexpr int64_t kImageChannels = 3;
inline constexpr int64_t kFoldedChannels = 2 * 2 * kImageChannels;
inline constexpr int64_t kStemOutputs = 3;     // of a side of a tile
inline constexpr int64_t kStemPositions = 36;  // products of a tile

// An image's floats, wherever they lie.
struct StemImage {
  const float* floats;
  int64_t height;
  int64_t width;
  std::array<int64_t, 3> strides;  // of channels, rows, columns
};

// Images of one size, as folded pixels, with what their tiles read around them.
struct StemFold {
  int64_t TileRows() const { return (height + kStemOutputs - 1) / kStemOutputs; }
  int64_t TileColumns() const { return (width + kStemOutputs - 1) / kStemOutputs; }
  int64_t Tiles() const { return TileRows() * TileColumns(); }
  int64_t Floats() const;  // of one image

  int64_t height;  // of the output: half of the image's, rounded up
  int64_t width;
};

// Floats of transformed tiles and kernels.
int64_t StemTileFloats(int64_t groups);
int64_t StemKernelFloats(int64_t out);

// Writes the pixels of an image into `folded`, which has zeros everywhere else.
void FoldImage(const StemImage& image, const StemFold& fold, float* folded);

// weight: [out, 3, 7, 7], row-major.
void TransformStemKernels(const float* weight, int64_t out, float* u);

// tiles: of all `folded` images, one after the other.
void TransformStemInput(const float* folded, const StemFold& fold, WinogradTiles tiles, float* v);

// m = v u.
void MultiplyStemTiles(const float* v, const float* u, int64_t groups, int64_t out, float* m);

// Writes the tiles' pixels. maps: of the output, [.., out].
void TransformStemOutput(const float* m, const WinogradMap& shape, WinogradTiles tiles, float* maps);

// From the gradient of the output.
void TransformStemOutputGradient(const float* maps, const WinogradMap& shape, WinogradTiles tiles, float* m);

// u += v^T m.
void AddStemProducts(const float* v, const float* m, int64_t groups, int64_t out, float* u);

// Writes the gradient of weight, [out, 3, 7, 7], row-major.
void TransformStemGradient(const float* u, int64_t out, float* weight);

}  // namespace ssl

#endif  // SSL_MODELS_STEM_KERNELS_H_
