// SPDX-License-Identifier: Apache-2.0
//
// The threads of a block as a team, and the blocks of a cooperative launch as teams: team.h.
#ifndef SSL_KERNELS_BLOCK_TEAM_CUH_
#define SSL_KERNELS_BLOCK_TEAM_CUH_

#include <cooperative_groups.h>

namespace ssl {

// Blocks are one-dimensional, of whole warps.
class BlockTeam {
 public:
  // scratch: kScratchBytes of shared memory, aligned to 8.
  static constexpr int kScratchBytes = 32 * 8;
  __device__ explicit BlockTeam(void* scratch) : scratch_(scratch) {}

  __device__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ void Wait() const { __syncthreads(); }

  // Of a warp.
  __device__ int lane() const { return index() % kWarp; }
  __device__ int lanes() const { return kWarp; }
  template <typename T>
  __device__ T LaneSum(T value) const {
    return ReduceWarp(value, [](T a, T b) { return a + b; });
  }

  template <typename T>
  __device__ T Sum(T value) const {
    return Reduce(
        value, [](T a, T b) { return a + b; }, static_cast<T>(0));
  }
  template <typename T>
  __device__ T Max(T value) const {
    return Reduce(
        value, [](T a, T b) { return a < b ? b : a; }, value);
  }

 private:
  static constexpr int kWarp = 32;
  static constexpr unsigned kAllLanes = 0xffffffffu;

  // Each lane combines the same pairs, so that all get the same bits.
  template <typename T, typename Combine>
  __device__ static T ReduceWarp(T value, Combine combine) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
    }
    return value;
  }

  // neutral: changes nothing where it is combined with the values of all threads.
  template <typename T, typename Combine>
  __device__ T Reduce(T value, Combine combine, T neutral) const {
    T* of_warps = static_cast<T*>(scratch_);
    value = ReduceWarp(value, combine);
    if (lane() == 0) of_warps[index() / kWarp] = value;
    __syncthreads();
    value = ReduceWarp(lane() < size() / kWarp ? of_warps[lane()] : neutral, combine);
    __syncthreads();
    return value;
  }

  void* scratch_;
};

// The blocks of one row, blockIdx.y, of a cooperative launch; they wait for those of all rows.
class RowOfBlocks {
 public:
  __device__ int index() const { return static_cast<int>(blockIdx.x); }
  __device__ int size() const { return static_cast<int>(gridDim.x); }
  __device__ void Wait() const { cooperative_groups::this_grid().sync(); }
};

}  // namespace ssl

#endif  // SSL_KERNELS_BLOCK_TEAM_CUH_
