// SPDX-License-Identifier: Apache-2.0
//
// Which blocks of a chain to run again in backward, so that a training step fits into a budget of memory at the least
// cost in time. Pure functions of measured costs.
//
// The model of a step: forward runs the blocks in order; each adds bytes to what is held until its backward. Backward
// runs in reverse; a recomputed block needs all of its bytes there once more, while everything before it is held. So
// the most that is held is, over the blocks i, what is held before i plus what the backward of i works with. A pass per
// resolution is the chain continued: blocks of the second pass follow those of the first.
#ifndef SSL_MODELS_RECOMPUTE_PLAN_H_
#define SSL_MODELS_RECOMPUTE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ssl {

// Of one block in one pass.
struct BlockCost {
  // United Perception's greedy orders blocks of about the same size by the number at the end of the name.
  std::string name;
  int64_t bytes = 0;       // that a plain run adds to what is held, its output included
  int64_t kept_bytes = 0;  // that a recomputed run adds: its output; at most `bytes`
  double seconds = 0.0;    // of one forward run: what recomputing costs
  // The most that its backward holds at once above what is held before the block: its `bytes` and gradients. Taken as
  // `bytes` when it is less.
  int64_t working_bytes = 0;
};

// Indices of blocks to recompute, ascending.
using RecomputeSet = std::vector<size_t>;

// The most bytes held at once.
int64_t PredictPeak(const std::vector<BlockCost>& blocks, const RecomputeSet& recomputed);

// The sum of seconds.
double PredictSeconds(const std::vector<BlockCost>& blocks, const RecomputeSet& recomputed);

// United Perception's strategy "greedy": until at least `need` bytes are saved, the smallest block that saves the rest
// alone, or else the smallest of all; blocks within a tenth of the largest of their bucket count as equal. It may save
// far more than needed. All blocks when they do not suffice.
RecomputeSet PlanGreedily(const std::vector<BlockCost>& blocks, int64_t need);

// United Perception's strategy "memory_time": a set that saves at least `need` bytes at the least sum of seconds,
// whatever backward needs meanwhile. United Perception's own search finds it in most cases only; this one is exact, up
// to rounding of bytes to 1/4096 of the need, by which each block may count for less. All blocks when they do not
// suffice.
RecomputeSet PlanByMemoryAndTime(const std::vector<BlockCost>& blocks, int64_t need);

// Ours, "optimal": the set of least seconds whose PredictPeak is at most `budget` bytes, by dynamic programming over
// the chain; bytes are rounded up to 1/8192 of the budget. All blocks where no set fits: no other set's peak is lower.
RecomputeSet PlanOptimally(const std::vector<BlockCost>& blocks, int64_t budget);

}  // namespace ssl

#endif  // SSL_MODELS_RECOMPUTE_PLAN_H_
