// SPDX-License-Identifier: Apache-2.0
//
// Keeps the checkpoint with the best value of a metric, for each of several metrics. Stage kPersist, before the
// checkpoint hook: what that one saves at the same moment knows the new best.
//
// At the end of each phase that has the metric ("Testing/" or "Training/" at its beginning, or "Evaluation/" for those
// after which the hook `eval` has measured), and after each step at which a hook has measured it ("Evaluation/",
// "Host/"), a value that is strictly better than the best so far is the best; NaN and infinity never are. The run is
// saved then, and the checkpoint named (ssl/core/checkpoint_names.h): "best" with one metric, "best.<metric>" with
// several ('/' becomes '_'); an instance with a name of its own puts it behind "best". A named checkpoint is kept
// whatever CHECKPOINT.KEEP_LAST says. State, for each metric: `value` and `iteration` of the best. A run that goes on
// takes the best for granted as long as its checkpoint is there; without it, the next value is the best. A checkpoint
// that an epoch's end has made does not know what the test phase after it has measured: when that had made it the best,
// it keeps the name until it is measured again.
//
// United Perception's auto_save_best has neither modes nor state beyond its file (values below -1 never save), and
// LiBai's BestCheckpointer forgets the best value at a restart; detectron2's saves infinities. Ours does as their pages
// say.
#ifndef SSL_HOOKS_BEST_CHECKPOINT_HOOK_H_
#define SSL_HOOKS_BEST_CHECKPOINT_HOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section HOOKS.BEST_CHECKPOINT (ours).
struct BestCheckpointOptions : public ComponentOptions {
  std::vector<std::string> metrics;
  std::string mode = "auto";

  absl::string_view section() const override { return "HOOKS.BEST_CHECKPOINT"; }
  bool enabled() const override { return !metrics.empty(); }
  void VisitFields(FieldVisitor& visitor) override;
};

class BestCheckpointHook : public Hook {
 public:
  // Without metrics: that of Testing/loss_mean, and none in a run that has no test phase.
  // path: of METRICS, for messages.
  explicit BestCheckpointHook(const BestCheckpointOptions& options,
                              std::string path = "config.HOOKS.BEST_CHECKPOINT.METRICS");

  absl::string_view name() const override { return "best_checkpoint"; }
  HookStage stage() const override { return HookStage::kPersist; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnPhaseStart(StepContext& context) override { return OnStep(context); }
  absl::Status OnStep(StepContext& context) override;
  // NotFound, with the nearest name, when a phase of the metric's kind has no such value.
  absl::Status OnPhaseEnd(StepContext& context) override;
  // Warns of a metric that no evaluation has measured.
  absl::Status OnEnd(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

 private:
  struct Best : public Stateful {
    std::string metric;
    bool less_is_better = false;
    double value = 0.0;
    int64_t iteration = -1;         // below 0: there is none yet
    bool is_to_be_settled = false;  // a later checkpoint than this one has the name; not in the state

    bool IsBeatenBy(double other) const;
    void VisitState(StateVisitor& visitor) override;
  };

  std::string NameFor(const Best& best) const;
  // Gives the name to the best; there is none when its checkpoint is gone.
  absl::Status Settle(StepContext& context, Best* best) const;
  absl::Status Compare(double value, StepContext& context, Best* best) const;
  absl::Status Keep(const Best& best, StepContext& context) const;

  const std::string path_;
  std::vector<Best> bests_;
};

// The names that such hooks of `config`, the resolved tree under "config", give to checkpoints. None of an entry of
// config.hooks that cannot be read.
std::vector<std::string> BestCheckpointNames(const ConfigNode& config);

absl::Status RegisterBestCheckpointHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_BEST_CHECKPOINT_HOOK_H_
