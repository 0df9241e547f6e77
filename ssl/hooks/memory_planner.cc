// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_planner.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ssl/core/tensor_memory.h"

namespace ssl {
namespace {

// Pixels and budgets whose leading bits agree share a plan: at most 1.6 % are given away.
constexpr int64_t kLeadingValues = 64;
// A plan is kept while it fits and at most this part of the limit has become free: what a process has in use when it
// begins a step varies with the loader and with saves in the background, and is least in its first step.
constexpr int64_t kKeptShare = 4;
constexpr size_t kNumbersOfSize = 6;  // MemoryMeasurements::sizes

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int64_t RoundUp(int64_t pixels) {
  int64_t unit = 1;
  while (pixels / unit >= 2 * kLeadingValues) unit *= 2;
  return (pixels + unit - 1) / unit * unit;
}

int64_t TotalPixels(const std::vector<PassShape>& passes) {
  int64_t pixels = 0;
  for (const PassShape& pass : passes) pixels += pass.pixels();
  return pixels;
}

int64_t Interpolated(int64_t low, int64_t high, double share) {
  return static_cast<int64_t>(static_cast<double>(low) + share * static_cast<double>(high - low));
}

}  // namespace

void MemoryMeasurements::VisitState(StateVisitor& visitor) {
  visitor.Int("passes", passes);
  visitor.Ints("sizes", sizes);
  visitor.Doubles("seconds", seconds);
  visitor.Int("max_bytes", max_bytes);
  visitor.Ints("plans", plans);
}

// Fills the planner's record, while it is that of the observer's own forward pass.
class MemoryPlanner::Observer : public RecomputeObserver {
 public:
  Observer(MemoryPlanner* planner, size_t pass) : planner_(*planner), plan_(planner->planned_), pass_(pass) {}

  void BeforeRun(BlockRange range, bool again) override {
    if (plan_ != planner_.planned_) return;
    Record& record = planner_.record_;
    const TensorMemory memory = GetTensorMemory();
    if (again && record.rest < 0) record.rest = memory.peak - record.end_of_forward;
    if (again) ResetTensorMemoryPeak();
    record.before = memory.in_use;
    record.start_seconds = Now();
  }

  void AfterRun(BlockRange range, bool again) override {
    if (plan_ != planner_.planned_) return;
    Record& record = planner_.record_;
    const double seconds = Now() - record.start_seconds;
    const int64_t in_use = GetTensorMemory().in_use;
    Cost& cost = planner_.CostOf(pass_, range);
    cost.bytes = in_use - record.before;
    if (again) {
      cost.seconds = seconds;
      return;
    }
    cost.kept_bytes = cost.bytes;
    const bool last = pass_ + 1 == record.passes.size() && range.end == planner_.parts_.back().range.end;
    if (!last) return;
    record.end_of_forward = in_use;
    ResetTensorMemoryPeak();
  }

  void AfterGradients(BlockRange range) override {
    if (plan_ != planner_.planned_) return;
    Cost& cost = planner_.CostOf(pass_, range);
    cost.working_bytes = GetTensorMemory().peak - planner_.HeldBefore(pass_, range);
  }

 private:
  MemoryPlanner& planner_;
  const int64_t plan_;  // its number
  const size_t pass_;
};

MemoryPlanner::MemoryPlanner(const std::vector<std::string>& block_names, const std::vector<BlockRange>& candidates,
                             const MemoryPlannerOptions& options)
    : options_(options) {
  const auto add = [&](BlockRange range, bool candidate) {
    if (range.begin == range.end) return;
    const bool single = range.end - range.begin == 1;
    const std::string end = single ? "" : absl::StrCat(" - ", block_names[range.end - 1]);
    parts_.push_back({absl::StrCat(block_names[range.begin], end), range, candidate});
  };
  size_t next = 0;
  for (const BlockRange& range : candidates) {
    add({next, range.begin}, /*candidate=*/false);
    add(range, /*candidate=*/true);
    next = range.end;
  }
  add({next, block_names.size()}, /*candidate=*/false);
}

int64_t MemoryPlanner::warm_up_left() const { return std::max<int64_t>(0, options_.warmup_passes - planned_); }

// The last pass counts once its step is over, which a copy takes for granted: observers of this planner may still come.
MemoryMeasurements MemoryPlanner::measurements() const {
  MemoryPlanner settled(*this);
  if (settled.warming_up()) settled.Commit();
  MemoryMeasurements measured;
  measured.passes = planned_;
  measured.max_bytes = options_.max_bytes;
  measured.plans = WriteBudgets();
  for (size_t part = 0; part <= parts_.size(); ++part) {
    for (const auto& [pixels, cost] : settled.CostsOf(part)) {
      measured.sizes.insert(measured.sizes.end(), {static_cast<int64_t>(part), pixels, cost.bytes, cost.kept_bytes,
                                                   cost.working_bytes, cost.samples});
      measured.seconds.push_back(cost.seconds);
    }
  }
  return measured;
}

bool MemoryPlanner::GoOnFrom(const MemoryMeasurements& measured) {
  std::optional<Budgets> budgets = ReadBudgets(measured.plans);
  if (!budgets.has_value() || measured.sizes.size() != kNumbersOfSize * measured.seconds.size()) return false;
  std::vector<Costs> costs(parts_.size() + 1);
  for (size_t i = 0; i < measured.seconds.size(); ++i) {
    const int64_t* const size = &measured.sizes[kNumbersOfSize * i];
    if (size[0] < 0 || size[0] > static_cast<int64_t>(parts_.size())) return false;
    costs[static_cast<size_t>(size[0])][size[1]] = {size[2], size[3], size[4], measured.seconds[i], size[5]};
  }
  for (const Costs& of_part : costs) {
    if (of_part.empty() != costs.front().empty()) return false;
  }
  for (size_t part = 0; part <= parts_.size(); ++part) CostsOf(part) = std::move(costs[part]);
  record_ = Record();
  plans_.clear();
  budgets_ = measured.max_bytes == options_.max_bytes ? *std::move(budgets) : Budgets();
  planned_ = measured.passes;
  first_ = planned_ + 1;
  return true;
}

std::vector<RecomputePlan> MemoryPlanner::Plan(const std::vector<PassShape>& passes) {
  if (warming_up()) Commit();
  ++planned_;
  return warming_up() ? PlanToMeasure(passes) : PlanToFit(passes);
}

std::vector<RecomputePlan> MemoryPlanner::PlanToMeasure(const std::vector<PassShape>& passes) {
  record_ = Record();
  record_.passes = passes;
  record_.costs.assign(passes.size(), std::vector<Cost>(parts_.size()));
  record_.start = GetTensorMemory().in_use;
  std::vector<RecomputePlan> plans(passes.size());
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    for (const Part& part : parts_) {
      if (part.candidate) plans[pass].recomputed.push_back(part.range);
    }
    plans[pass].observer = std::make_shared<Observer>(this, pass);
  }
  return plans;
}

std::vector<RecomputePlan> MemoryPlanner::PlanToFit(const std::vector<PassShape>& passes) {
  const int64_t start = GetTensorMemory().in_use;
  const int64_t unit = std::max<int64_t>(1, options_.max_bytes / kLeadingValues);
  std::vector<int64_t> pixels;
  for (const PassShape& pass : passes) {
    const bool measured = parts_.front().costs.count(pass.pixels()) > 0;
    pixels.push_back(measured ? pass.pixels() : RoundUp(pass.pixels()));
  }
  const int64_t budget = BudgetFor(pixels, std::max<int64_t>(0, options_.max_bytes - start) / unit * unit);
  const auto [planned, is_new] = plans_.try_emplace({pixels, budget});
  if (is_new) planned->second = MakePlan(passes, pixels, start, budget);
  forecast_ = planned->second.forecast;
  return planned->second.plans;
}

int64_t MemoryPlanner::BudgetFor(const std::vector<int64_t>& pixels, int64_t now) {
  int64_t& used = budgets_.try_emplace(pixels, now).first->second;
  const int64_t free = now - used;
  if (free < 0 || free > options_.max_bytes / kKeptShare) used = now;
  return used;
}

std::vector<int64_t> MemoryPlanner::WriteBudgets() const {
  std::vector<int64_t> numbers;
  for (const auto& [pixels, budget] : budgets_) {
    numbers.push_back(static_cast<int64_t>(pixels.size()));
    numbers.insert(numbers.end(), pixels.begin(), pixels.end());
    numbers.push_back(budget);
  }
  return numbers;
}

std::optional<MemoryPlanner::Budgets> MemoryPlanner::ReadBudgets(const std::vector<int64_t>& numbers) {
  Budgets budgets;
  for (auto next = numbers.begin(); next != numbers.end();) {
    const int64_t passes = *next++;
    if (passes < 0 || passes >= numbers.end() - next) return std::nullopt;
    const std::vector<int64_t> pixels(next, next + passes);
    next += passes;
    budgets[pixels] = *next++;
  }
  return budgets;
}

MemoryPlanner::Planned MemoryPlanner::MakePlan(const std::vector<PassShape>& passes, const std::vector<int64_t>& pixels,
                                               int64_t start, int64_t budget) const {
  const double begin = Now();
  const std::vector<BlockCost> chain = PredictChain(pixels);
  RecomputeSet set = Choose(chain, budget);
  const auto is_fixed = [&](size_t i) { return i + 1 == chain.size() || !parts_[i % parts_.size()].candidate; };
  set.erase(std::remove_if(set.begin(), set.end(), is_fixed), set.end());
  Planned planned;
  planned.plans.resize(passes.size());
  for (const size_t i : set) {
    const size_t pass = i / parts_.size();
    const Part& part = parts_[i % parts_.size()];
    planned.plans[pass].recomputed.push_back(part.range);
    planned.forecast.recomputed.push_back(
        absl::StrCat(part.name, " (", passes[pass].images, "x", passes[pass].height, "x", passes[pass].width, ")"));
  }
  planned.forecast.peak_bytes = start + PredictPeak(chain, set);
  planned.forecast.peak_without_bytes = start + PredictPeak(chain, {});
  planned.forecast.recompute_seconds = PredictSeconds(chain, set);
  planned.forecast.planning_seconds = Now() - begin;
  return planned;
}

std::vector<BlockCost> MemoryPlanner::PredictChain(const std::vector<int64_t>& pixels) const {
  std::vector<BlockCost> chain;
  for (const int64_t of_pass : pixels) {
    for (const Part& part : parts_) {
      const Cost cost = Predict(part.costs, of_pass);
      chain.push_back({part.name, cost.bytes, cost.kept_bytes, cost.seconds, cost.working_bytes});
    }
  }
  const Cost rest = Predict(rest_, std::accumulate(pixels.begin(), pixels.end(), int64_t{0}));
  chain.push_back({"rest", rest.bytes, rest.bytes, 0.0, rest.bytes});
  return chain;
}

// United Perception's strategies only count what is saved: they are asked for more until backward fits, too.
RecomputeSet MemoryPlanner::Choose(const std::vector<BlockCost>& chain, int64_t budget) const {
  if (options_.strategy == RecomputeStrategy::kOptimal) return PlanOptimally(chain, budget);
  const auto plan = options_.strategy == RecomputeStrategy::kGreedy ? &PlanGreedily : &PlanByMemoryAndTime;
  for (int64_t need = PredictPeak(chain, {}) - budget;;) {
    RecomputeSet set = plan(chain, need);
    const int64_t excess = PredictPeak(chain, set) - budget;
    if (excess <= 0 || set.size() == chain.size()) return set;
    need += std::max(excess, need / kLeadingValues);
  }
}

// Without a backward there is nothing to take. A part that is not run again in it has no gradients to compute, and
// keeps nothing but its output. The first pass of a process is left out when others follow: memory is new to it then,
// and slower.
void MemoryPlanner::Commit() {
  if (record_.rest < 0 || (planned_ == first_ && planned_ < options_.warmup_passes)) return;
  // Other threads may take and free tensors meanwhile: what is impossible is cut.
  const auto add = [](const Cost& sample, Cost* cost) {
    cost->kept_bytes = std::max(cost->kept_bytes, sample.kept_bytes);
    cost->bytes = std::max({cost->bytes, sample.bytes, cost->kept_bytes});
    cost->working_bytes = std::max(cost->working_bytes, sample.working_bytes);
    cost->seconds += (sample.seconds - cost->seconds) / static_cast<double>(++cost->samples);
  };
  for (size_t pass = 0; pass < record_.passes.size(); ++pass) {
    for (size_t part = 0; part < parts_.size(); ++part) {
      add(record_.costs[pass][part], &parts_[part].costs[record_.passes[pass].pixels()]);
    }
  }
  Cost rest;
  rest.bytes = record_.rest;
  add(rest, &rest_[TotalPixels(record_.passes)]);
  record_ = Record();
}

MemoryPlanner::Cost& MemoryPlanner::CostOf(size_t pass, BlockRange range) {
  const auto part =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& other) { return other.range.begin == range.begin; });
  return record_.costs[pass][static_cast<size_t>(part - parts_.begin())];
}

int64_t MemoryPlanner::HeldBefore(size_t pass, BlockRange range) const {
  int64_t held = record_.start;
  for (size_t i = 0; i <= pass; ++i) {
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (i == pass && parts_[part].range.begin >= range.begin) break;
      held += record_.costs[i][part].kept_bytes;
    }
  }
  return held;
}

// Between measured sizes on the line through both; beyond the largest on the line from zero through it, since what does
// not grow, such as gradients of weights, is then counted too high rather than too low; below the smallest as it.
MemoryPlanner::Cost MemoryPlanner::Predict(const Costs& costs, int64_t pixels) {
  const auto above = costs.lower_bound(pixels);
  if (above != costs.end() && (above->first == pixels || above == costs.begin())) return above->second;
  const auto& [low_pixels, low] = *std::prev(above);
  const auto& [high_pixels, high] = above == costs.end() ? *std::prev(above) : *above;
  const bool beyond = above == costs.end();
  const double share = beyond
                           ? static_cast<double>(pixels) / static_cast<double>(low_pixels)
                           : static_cast<double>(pixels - low_pixels) / static_cast<double>(high_pixels - low_pixels);
  const Cost zero;
  const Cost& from = beyond ? zero : low;
  Cost cost;
  cost.bytes = Interpolated(from.bytes, high.bytes, share);
  cost.kept_bytes = Interpolated(from.kept_bytes, high.kept_bytes, share);
  cost.working_bytes = Interpolated(from.working_bytes, high.working_bytes, share);
  cost.seconds = from.seconds + share * (high.seconds - from.seconds);
  return cost;
}

}  // namespace ssl
