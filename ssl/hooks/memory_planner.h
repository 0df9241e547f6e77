// SPDX-License-Identifier: Apache-2.0
//
// Dynamic activation checkpointing: measures what the parts of a model take in memory and time, then recomputes as few
// of them as fit a limit. United Perception's memory_checkpoint, with three differences: a part is measured while it is
// recomputed anyway, not by an extra run; what backward works with is measured, too, so that the limit holds there; and
// a plan depends on the memory that is in use when it is made.
//
// Memory is that of large tensors (ssl/core/tensor_memory.h). Not thread-safe; observers of a pass refer to the
// planner, which outlives the backward of every pass that it planned.
#ifndef SSL_HOOKS_MEMORY_PLANNER_H_
#define SSL_HOOKS_MEMORY_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssl/core/recompute_policy.h"
#include "ssl/core/stateful.h"
#include "ssl/models/recompute_plan.h"

namespace ssl {

enum class RecomputeStrategy { kGreedy, kMemoryTime, kOptimal };

struct MemoryPlannerOptions {
  int64_t warmup_passes = 30;  // forward passes of the model in which all candidates are recomputed, and measured
  int64_t max_bytes = 0;       // of large tensors at once
  RecomputeStrategy strategy = RecomputeStrategy::kMemoryTime;
};

// What was decided for the last forward pass, for people.
struct MemoryForecast {
  int64_t peak_bytes = 0;                    // of large tensors at once, those included that were in use before
  int64_t peak_without_bytes = 0;            // if nothing were recomputed
  double recompute_seconds = 0.0;            // of all passes together
  double planning_seconds = 0.0;             // when the plan was made; plans are kept
  std::vector<std::string> recomputed = {};  // "res2.0 (4x224x224)": the part, and the images of its pass
};

// What a planner has measured, and for what it has planned. Plans follow from these alone: a planner that is given them
// has the same ones.
struct MemoryMeasurements : public Stateful {
  int64_t passes = 0;  // that were planned, those of the warm-up included
  // Six numbers for each part and size of a pass: the part's index (the number of parts for heads and loss), pixels,
  // bytes, kept bytes, working bytes, samples.
  std::vector<int64_t> sizes = {};
  std::vector<double> seconds = {};  // one for each six
  int64_t max_bytes = 0;             // the limit of the plans
  // Of each plan in use: the number of passes, the pixels of each, the budget.
  std::vector<int64_t> plans = {};

  void VisitState(StateVisitor& visitor) override;
};

class MemoryPlanner : public RecomputePolicy {
 public:
  // block_names: Model::block_names(), not empty. candidates: what may be recomputed; ordered, disjoint.
  MemoryPlanner(const std::vector<std::string>& block_names, const std::vector<BlockRange>& candidates,
                const MemoryPlannerOptions& options);

  std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) override;

  // Parts are still measured: the warm-up is not over, or no forward pass has had its backward yet.
  bool warming_up() const { return planned_ <= options_.warmup_passes || rest_.empty(); }
  // Something was planned after the warm-up.
  bool has_forecast() const { return !plans_.empty(); }
  // Of the last such plan.
  const MemoryForecast& forecast() const { return forecast_; }
  // How many different plans there are by now; one more after a Plan that made a new one.
  size_t number_of_plans() const { return plans_.size(); }
  // Forward passes of the warm-up that are still to come.
  int64_t warm_up_left() const;

  // Between steps: all that was measured until now.
  MemoryMeasurements measurements() const;
  // Goes on from what a planner of the same parts has measured, and with its plans where the limit is the same; false,
  // and nothing is changed, when it is not of as many parts.
  bool GoOnFrom(const MemoryMeasurements& measured);

 private:
  class Observer;

  // Measured or predicted, of one part in one pass.
  struct Cost {
    int64_t bytes = 0;
    int64_t kept_bytes = 0;
    int64_t working_bytes = 0;
    double seconds = 0.0;
    int64_t samples = 0;  // of seconds
  };
  // By the number of pixels of the pass.
  using Costs = std::map<int64_t, Cost>;

  // Neighbouring blocks that are planned as one.
  struct Part {
    std::string name;
    BlockRange range;
    bool candidate = false;
    Costs costs = {};
  };

  // A forward pass of the model and its backward, as measured. Bytes of memory are of all large tensors.
  struct Record {
    std::vector<PassShape> passes;
    std::vector<std::vector<Cost>> costs;  // [pass][part]
    int64_t start = 0;                     // in use before
    int64_t end_of_forward = -1;           // in use then; below 0: the passes are not through
    int64_t rest = -1;                     // the most above that before the first part was run again
    int64_t before = 0;                    // of the run in progress
    double start_seconds = 0.0;
  };

  // By the rounded pixels of the passes: the rounded budget of the plan that was used last.
  using Budgets = std::map<std::vector<int64_t>, int64_t>;

  // What is decided for passes of these shapes.
  struct Planned {
    std::vector<RecomputePlan> plans;
    MemoryForecast forecast;
  };

  std::vector<RecomputePlan> PlanToMeasure(const std::vector<PassShape>& passes);
  std::vector<RecomputePlan> PlanToFit(const std::vector<PassShape>& passes);
  // The budget that the plan for these passes is made for, when `now` is there: that of the one before, if it is to be
  // kept.
  int64_t BudgetFor(const std::vector<int64_t>& pixels, int64_t now);
  std::vector<int64_t> WriteBudgets() const;
  // Nullopt for what WriteBudgets has not written.
  static std::optional<Budgets> ReadBudgets(const std::vector<int64_t>& numbers);
  // The chain of all parts of all passes, by their pixels, and of what follows them.
  std::vector<BlockCost> PredictChain(const std::vector<int64_t>& pixels) const;
  RecomputeSet Choose(const std::vector<BlockCost>& chain, int64_t budget) const;
  // passes: for their names; pixels: what is planned for.
  Planned MakePlan(const std::vector<PassShape>& passes, const std::vector<int64_t>& pixels, int64_t start,
                   int64_t budget) const;
  // Takes what was measured since the last Plan.
  void Commit();
  Cost& CostOf(size_t pass, BlockRange range);
  int64_t HeldBefore(size_t pass, BlockRange range) const;
  // Of a part, or of heads and loss.
  Costs& CostsOf(size_t part) { return part < parts_.size() ? parts_[part].costs : rest_; }
  static Cost Predict(const Costs& costs, int64_t pixels);

  const MemoryPlannerOptions options_;
  std::vector<Part> parts_;  // all blocks, in order
  Costs rest_;               // of heads and loss, by the pixels of all passes
  Record record_;
  int64_t planned_ = 0;
  int64_t first_ = 1;  // number of the first pass of this process
  Budgets budgets_;
  // By pixels and budget; those that this process has used.
  std::map<std::pair<std::vector<int64_t>, int64_t>, Planned> plans_;
  MemoryForecast forecast_;
};

}  // namespace ssl

#endif  // SSL_HOOKS_MEMORY_PLANNER_H_
