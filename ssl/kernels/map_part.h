// SPDX-License-Identifier: Apache-2.0
//
// A feature map [rows, channels], channels-last, as teams of threads (team.h) go over it, and sums over its rows.
//
// A team has a tile of channels in every row_blocks-th block of rows. Threads read vectors of 16 bytes, so maps begin
// at a multiple of 16 bytes, and channels are a multiple of MapVector(). Sums are of single precision within a team and
// of double precision over teams, in an order that the grid decides alone: the same map gives the same bits.
#ifndef SSL_KERNELS_MAP_PART_H_
#define SSL_KERNELS_MAP_PART_H_

#include <algorithm>
#include <cstdint>

#include "ssl/kernels/host_device.h"

namespace ssl {

enum class MapType { kFloat, kHalf, kBfloat16 };

// Values that a thread reads at once.
constexpr int MapVector(MapType type) { return type == MapType::kFloat ? 4 : 8; }

struct MapShape {
  MapType type = MapType::kFloat;
  int64_t rows = 0;
  int channels = 0;
};

// How teams share a map. Team t has tile t % tiles.
struct MapGrid {
  int tile_vectors = 0;  // of channels of a row, beside each other; at most the threads of a team
  int tiles = 0;         // next to each other
  int row_blocks = 0;    // that share the rows of a tile
  int teams() const { return tiles * row_blocks; }
};

// For teams of so many threads, of which so many run at the same time. A thread has two rows at least.
inline MapGrid MapGridFor(const MapShape& shape, int threads, int teams_at_once) {
  constexpr int kMostVectors = 32;
  const int vectors = shape.channels / MapVector(shape.type);
  MapGrid grid;
  grid.tile_vectors = std::min({vectors, kMostVectors, threads});
  grid.tiles = (vectors + grid.tile_vectors - 1) / grid.tile_vectors;
  const int64_t fitting = std::max(1, teams_at_once / grid.tiles);
  const int64_t rows_at_once = int64_t{2} * (threads / grid.tile_vectors);
  grid.row_blocks = static_cast<int>(std::min(fitting, (shape.rows + rows_at_once - 1) / rows_at_once));
  return grid;
}

// Floats of two sums for each channel in each row block.
inline int64_t MapSumsSize(const MapShape& shape, const MapGrid& grid) {
  return int64_t{2} * shape.channels * grid.row_blocks;
}

// How a map's values are computed with: ToFloat(T), and FromFloat(float), which rounds to nearest. Whoever has maps of
// another type specialises it.
template <typename T>
struct MapValue;

template <>
struct MapValue<float> {
  SSL_HOST_DEVICE static float ToFloat(float value) { return value; }
  SSL_HOST_DEVICE static float FromFloat(float value) { return value; }
};

// Neighbouring channels of a row.
template <typename T>
struct alignas(16) ValueVector {
  static constexpr int kSize = 16 / sizeof(T);

  SSL_HOST_DEVICE float Get(int i) const { return MapValue<T>::ToFloat(values[i]); }
  SSL_HOST_DEVICE void Set(int i, float value) { values[i] = MapValue<T>::FromFloat(value); }

  T values[kSize];
};

// One thread's part of a map: a vector of channels in every stride-th row.
template <typename Team, typename Teams, typename T>
class MapPart {
 public:
  using Vector = ValueVector<T>;
  static constexpr int kSize = Vector::kSize;

  SSL_TEAM_FUNCTION MapPart(const Team& team, const Teams& teams, const MapShape& shape, const MapGrid& grid)
      : team_(team),
        rows_(shape.rows),
        channels_(shape.channels),
        row_vectors_(shape.channels / kSize),
        tile_vectors_(grid.tile_vectors),
        tile_(teams.index() % grid.tiles),
        row_block_(teams.index() / grid.tiles),
        row_blocks_(grid.row_blocks) {}

  SSL_TEAM_FUNCTION bool has_channels() const { return row_of_team() < team_rows() && vector() < row_vectors_; }
  // The first of this thread's, where it has some.
  SSL_TEAM_FUNCTION int channel() const { return vector() * kSize; }
  SSL_TEAM_FUNCTION int vector() const { return tile_ * tile_vectors_ + team_.index() % tile_vectors_; }

  // load(slot, index) and then body(slot, index) with the vectors of this thread's rows, kAtOnce of them at a time.
  template <int kAtOnce, typename Load, typename Body>
  SSL_TEAM_FUNCTION void ForRows(Load load, Body body) const {
    if (!has_channels()) return;
    const int64_t stride = static_cast<int64_t>(row_blocks_) * team_rows();
    const auto index = [&](int64_t row) { return row * row_vectors_ + vector(); };
    int64_t row = static_cast<int64_t>(row_block_) * team_rows() + row_of_team();
    for (; row + (kAtOnce - 1) * stride < rows_; row += kAtOnce * stride) {
      SSL_UNROLL for (int slot = 0; slot < kAtOnce; ++slot) load(slot, index(row + slot * stride));
      SSL_UNROLL for (int slot = 0; slot < kAtOnce; ++slot) body(slot, index(row + slot * stride));
    }
    for (; row < rows_; row += stride) {
      load(0, index(row));
      body(0, index(row));
    }
  }

  // Adds up two sums of each of this thread's channels over the threads of the team that have the same, and writes them
  // to `sums`, MapSumsSize of them. Every thread calls it. shared: kSize floats of each thread, the team's own.
  SSL_TEAM_FUNCTION void WriteSums(const float* first, const float* second, float* shared, float* sums) const {
    WriteSum(first, shared, sums + int64_t{2} * row_block_ * channels_);
    WriteSum(second, shared, sums + (int64_t{2} * row_block_ + 1) * channels_);
  }

 private:
  SSL_TEAM_FUNCTION int team_rows() const { return team_.size() / tile_vectors_; }
  SSL_TEAM_FUNCTION int row_of_team() const { return team_.index() / tile_vectors_; }

  // result: [channels].
  SSL_TEAM_FUNCTION void WriteSum(const float* values, float* shared, float* result) const {
    const int width = tile_vectors_ * kSize;
    team_.Wait();
    if (row_of_team() < team_rows()) {
      float* const own = shared + row_of_team() * width + team_.index() % tile_vectors_ * kSize;
      SSL_UNROLL for (int i = 0; i < kSize; ++i) own[i] = values[i];
    }
    team_.Wait();
    for (int c = team_.index(); c < width; c += team_.size()) {
      const int channel = tile_ * width + c;
      if (channel >= channels_) continue;
      float sum = 0.0f;
      for (int row = 0; row < team_rows(); ++row) sum += shared[row * width + c];
      result[channel] = sum;
    }
  }

  const Team team_;
  const int64_t rows_;
  const int channels_;
  const int row_vectors_;
  const int tile_vectors_;
  const int tile_;
  const int row_block_;
  const int row_blocks_;
};

// solve(channel, first, second) with the sums of all row blocks, in one thread for each channel. `sums` are those that
// all teams have written. Every thread calls it; teams may be as many as they like.
template <typename Team, typename Teams, typename Solve>
SSL_TEAM_FUNCTION void ForChannels(const Team& team, const Teams& teams, const MapShape& shape, const MapGrid& grid,
                                   const float* sums, Solve solve) {
  const int groups = team.size() / team.lanes();
  for (int c = teams.index() * groups + team.index() / team.lanes(); c < shape.channels; c += teams.size() * groups) {
    double first = 0.0, second = 0.0;
    for (int block = team.lane(); block < grid.row_blocks; block += team.lanes()) {
      first += sums[int64_t{2} * block * shape.channels + c];
      second += sums[(int64_t{2} * block + 1) * shape.channels + c];
    }
    first = team.LaneSum(first);
    second = team.LaneSum(second);
    if (team.lane() == 0) solve(c, first, second);
  }
}

}  // namespace ssl

#endif  // SSL_KERNELS_MAP_PART_H_
