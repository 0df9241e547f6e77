// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/recompute_plan.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>

namespace ssl {
namespace {

constexpr int64_t kNeedUnits = 4096;
constexpr int64_t kBudgetUnits = 8192;
// Members of a bucket of "greedy" hold at least this part of its largest.
constexpr double kSameSize = 0.9;
constexpr double kNever = std::numeric_limits<double>::infinity();

int64_t Saved(const BlockCost& block) { return block.bytes - block.kept_bytes; }

RecomputeSet AllOf(const std::vector<BlockCost>& blocks) {
  RecomputeSet all(blocks.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

int64_t Working(const BlockCost& block) { return std::max(block.bytes, block.working_bytes); }

int64_t RoundedUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit; }

// The number that the name ends with; -1 without one.
int64_t TrailingNumber(const std::string& name) {
  size_t begin = name.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0) --begin;
  int64_t number = begin == name.size() ? -1 : 0;
  for (size_t i = begin; i < name.size(); ++i) number = number * 10 + (name[i] - '0');
  return number;
}

// The order in which "greedy" looks at blocks, from its end.
std::vector<size_t> GreedyOrder(const std::vector<BlockCost>& blocks) {
  std::vector<size_t> order = AllOf(blocks);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t left, size_t right) { return Saved(blocks[left]) > Saved(blocks[right]); });
  for (auto begin = order.begin(); begin != order.end();) {
    const double least = kSameSize * static_cast<double>(Saved(blocks[*begin]));
    const auto end = std::find_if(begin, order.end(),
                                  [&](size_t block) { return static_cast<double>(Saved(blocks[block])) < least; });
    std::stable_sort(begin, end, [&](size_t left, size_t right) {
      return TrailingNumber(blocks[left].name) > TrailingNumber(blocks[right].name);
    });
    begin = end == begin ? begin + 1 : end;
  }
  return order;
}

// For each block and state, whether the best way out of the state recomputes the block.
using Choices = std::vector<std::vector<bool>>;

}  // namespace

int64_t PredictPeak(const std::vector<BlockCost>& blocks, const RecomputeSet& recomputed) {
  int64_t held = 0;
  int64_t peak = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    peak = std::max(peak, held + Working(blocks[i]));
    const bool again = std::binary_search(recomputed.begin(), recomputed.end(), i);
    held += again ? blocks[i].kept_bytes : blocks[i].bytes;
  }
  return peak;
}

double PredictSeconds(const std::vector<BlockCost>& blocks, const RecomputeSet& recomputed) {
  double seconds = 0.0;
  for (const size_t block : recomputed) seconds += blocks[block].seconds;
  return seconds;
}

RecomputeSet PlanGreedily(const std::vector<BlockCost>& blocks, int64_t need) {
  std::vector<size_t> order = GreedyOrder(blocks);
  RecomputeSet chosen;
  while (need > 0 && !order.empty()) {
    const auto enough =
        std::find_if(order.rbegin(), order.rend(), [&](size_t block) { return Saved(blocks[block]) >= need; });
    const auto taken = enough == order.rend() ? order.end() - 1 : enough.base() - 1;
    need -= Saved(blocks[*taken]);
    chosen.push_back(*taken);
    order.erase(taken);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// least[s]: the least seconds of blocks i, i + 1 ... that save s units, from the last block on.
RecomputeSet PlanByMemoryAndTime(const std::vector<BlockCost>& blocks, int64_t need) {
  if (need <= 0) return {};
  const int64_t unit = RoundedUp(need, kNeedUnits);
  const int64_t units = RoundedUp(need, unit);
  std::vector<double> least(units + 1, kNever);
  least[0] = 0.0;
  Choices choices(blocks.size(), std::vector<bool>(units + 1));
  for (size_t i = blocks.size(); i-- > 0;) {
    const int64_t saved = Saved(blocks[i]) / unit;
    // Downwards: what is read is still that of the blocks after i.
    for (int64_t s = units; s > 0; --s) {
      const double with = least[std::max<int64_t>(0, s - saved)] + blocks[i].seconds;
      choices[i][s] = with < least[s];
      if (choices[i][s]) least[s] = with;
    }
  }
  if (least[units] == kNever) return AllOf(blocks);
  RecomputeSet chosen;
  int64_t s = units;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!choices[i][s]) continue;
    chosen.push_back(i);
    s = std::max<int64_t>(0, s - Saved(blocks[i]) / unit);
  }
  return chosen;
}

// least[h]: the least seconds of blocks i, i + 1 ... when h units are held before block i; from the last block on.
RecomputeSet PlanOptimally(const std::vector<BlockCost>& blocks, int64_t budget) {
  const int64_t unit = std::max<int64_t>(1, RoundedUp(budget, kBudgetUnits));
  const int64_t units = std::max<int64_t>(0, budget) / unit;
  std::vector<double> least(units + 1, 0.0);
  Choices choices(blocks.size(), std::vector<bool>(units + 1));
  for (size_t i = blocks.size(); i-- > 0;) {
    const int64_t plain = RoundedUp(blocks[i].bytes, unit);
    const int64_t again = RoundedUp(blocks[i].kept_bytes, unit);
    const int64_t working = RoundedUp(Working(blocks[i]), unit);
    // Upwards: what is read is still that of the blocks after i, or, of a block that adds nothing, its own state.
    for (int64_t h = 0; h <= units; ++h) {
      if (h + working > units) {
        least[h] = kNever;
        continue;
      }
      const double with = least[h + again] + blocks[i].seconds;
      choices[i][h] = with < least[h + plain];
      least[h] = std::min(with, least[h + plain]);
    }
  }
  if (least[0] == kNever) return AllOf(blocks);
  RecomputeSet chosen;
  int64_t held = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool again = choices[i][held];
    if (again) chosen.push_back(i);
    held += RoundedUp(again ? blocks[i].kept_bytes : blocks[i].bytes, unit);
  }
  return chosen;
}

}  // namespace ssl
