// SPDX-License-Identifier: Apache-2.0
//
// The hook memory_checkpoint, United Perception's: activation checkpointing of chosen parts of the trunk, all of them
// (without dc_cfg) or as few as a limit of memory allows (with it).
//
//   hooks:
//     - type: memory_checkpoint
//       kwargs:
//         checkpoint_patterns: {backbone: {patterns_mode: level, level: {num: default}}}
//         dc_cfg: {warmup_iters: 30, max_memory: 8, strategy: optimal}
//
// With dc_cfg, what is recomputed depends on measured time and memory: in float32 training is bitwise the same all the
// same; under autocast it may differ in rounding from run to run (ssl/models/recompute.h). What was measured, and how
// much of the warm-up is done, is state of the run, each rank's own: a run that resumes does not measure again. With
// another number of ranks, each has what rank 0 has measured; another network, other candidates or another number
// format are measured anew.
#ifndef SSL_HOOKS_MEMORY_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_MEMORY_CHECKPOINT_HOOK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/hook.h"
#include "ssl/core/recompute_policy.h"
#include "ssl/core/registries.h"
#include "ssl/core/stateful.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/memory_planner.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// level: {num: default} of a pattern.
struct CheckpointLevelOptions : public Options {
  std::string num = "default";

  void VisitFields(FieldVisitor& visitor) override;
};

// A pattern of kwargs.checkpoint_patterns.
struct CheckpointPatternOptions : public Options {
  std::string patterns_mode = "level";
  CheckpointLevelOptions level;
  std::vector<std::string> name_list;
  int64_t share_weight_num = 0;

  void VisitFields(FieldVisitor& visitor) override;
};

// kwargs.checkpoint_patterns, by the part of the model. Which of them somebody has written, the tree tells.
struct CheckpointPatternsOptions : public Options {
  CheckpointPatternOptions backbone;
  CheckpointPatternOptions trunk;

  void VisitFields(FieldVisitor& visitor) override;
};

// kwargs.dc_cfg: dynamic checkpointing.
struct DynamicCheckpointOptions : public Options {
  int64_t warmup_iters = 30;
  double max_memory = 8.0;
  int64_t debug_freq = -1;
  std::string strategy = "memory_time";

  void VisitFields(FieldVisitor& visitor) override;
};

// The kwargs of memory_checkpoint.
struct MemoryCheckpointOptions : public OncePerRunOptions {
  bool enable = true;
  CheckpointPatternsOptions checkpoint_patterns;  // {}: every block
  DynamicCheckpointOptions dc_cfg;                // {}: all candidates, always

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

// How candidates are cut out of a chain of blocks: by the first `level` parts of the blocks' names ("res2" of "res2.0"
// at level 1; 0: each block for itself), or those of the given names.
struct CandidateRule {
  int64_t level = 0;
  std::vector<std::string> names = {};        // of blocks or stages; not empty: these only
  std::string place = "checkpoint_patterns";  // where they stand, for messages
};

// NotFound names a name that fits no block, and the nearest one.
absl::StatusOr<std::vector<BlockRange>> Candidates(const CandidateRule& rule, const std::vector<std::string>& blocks);

// kwargs.checkpoint_patterns in United Perception's form. `place` begins the messages.
absl::StatusOr<CandidateRule> ReadCandidateRule(const ConfigNode& patterns, absl::string_view place);

class MemoryCheckpointHook : public Hook, private RecomputePolicy {
 public:
  // enable: false does nothing. dynamic: nullopt recomputes all candidates always. path: of dc_cfg, for messages.
  // number_format: of the run, any text; what was measured in one does not hold in another.
  MemoryCheckpointHook(bool enable, CandidateRule rule, std::optional<DynamicCheckpointOptions> dynamic,
                       std::string path = "dc_cfg", std::string number_format = "");

  absl::string_view name() const override { return "memory_checkpoint"; }
  HookStage stage() const override { return HookStage::kMutate; }
  std::vector<PlannedAction> Plan() const override;

  // FailedPrecondition for a model that is no chain of blocks, and where tensor memory is not installed.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnEnd(StepContext& context) override;

  // With dc_cfg: what was measured, and of what.
  void VisitState(StateVisitor& visitor) override;

  // Of the last forward pass; null before the first one, and without dc_cfg.
  const MemoryPlanner* planner() const { return planner_.get(); }

 private:
  std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) override;
  // From what a checkpoint has, if it is of this network.
  void GoOnFromState();
  // Of one that lasts as long as what is left of the run.
  void WarnOfLongWarmUp(const StepContext& context) const;
  // Of a plan that exceeds the limit, though all candidates are recomputed.
  void WarnOfMissedLimit() const;

  const bool enable_;
  const CandidateRule rule_;
  const std::optional<DynamicCheckpointOptions> dynamic_;
  const std::string path_;
  const std::string number_format_;
  std::vector<BlockRange> candidates_;
  std::string measurable_;  // blocks, candidates and number format
  std::unique_ptr<MemoryPlanner> planner_;
  // State.
  std::string measured_of_;  // measurable_, of the run that measured
  MemoryMeasurements measured_;
  bool told_ = false;  // what the first plan after the warm-up is
};

absl::Status RegisterMemoryCheckpointHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_MEMORY_CHECKPOINT_HOOK_H_
