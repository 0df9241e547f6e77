// SPDX-License-Identifier: Apache-2.0
//
// What winograd_kernels.h and stem_kernels.h say of maps and tiles.
#ifndef SSL_MODELS_WINOGRAD_SHAPES_H_
#define SSL_MODELS_WINOGRAD_SHAPES_H_

#include <cstdint>

namespace ssl {

inline constexpr int64_t kWinogradChannels = 32;
inline constexpr int64_t kMostWinogradChannels = 512;
// Tiles of a group: with 32 channels each, their sums fill 24 of the 32 registers of AVX-512.
inline constexpr int64_t kWinogradGroup = 12;

struct WinogradMap {
  int64_t height;
  int64_t width;
  int64_t channels;  // at most kMostWinogradChannels
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

}  // namespace ssl

#endif  // SSL_MODELS_WINOGRAD_SHAPES_H_
