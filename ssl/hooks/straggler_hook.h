// SPDX-License-Identifier: Apache-2.0
//
// Which rank the others wait for. Every FREQUENCY updates the ranks exchange, in one operation, how long they have
// worked on a step: its time without that of operations between ranks, in which the fast ones wait for the others (or
// virtual ranks of one process for their turn). It is the median of the updates since the last report: one that the
// machine has held up, by other work or a save, makes no rank slow. Of it,
//
//   Speed/rank_work_ms_mean, Speed/rank_work_ms_max   over the ranks
//   Speed/straggler_ratio                             max / median of the ranks; 1 when all are equally fast
//   Speed/slowest_rank
//
// and a warning of rank 0 names the slowest rank, and the part of the step in which it loses most, when the ratio is
// above FACTOR: 1.33, which is a score of 0.75 in NVIDIA's resiliency extension. Of an even number of ranks the median
// is the faster one of the two in the middle, so that one of two can be slow. Stage kObserve. No state: a resumed run
// begins a new window.
#ifndef SSL_HOOKS_STRAGGLER_HOOK_H_
#define SSL_HOOKS_STRAGGLER_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// The section HOOKS.STRAGGLER (ours).
struct StragglerOptions : public OncePerRunOptions {
  bool report_stragglers = false;
  int64_t frequency = 100;
  double factor = 1.33;

  absl::string_view section() const override { return "HOOKS.STRAGGLER"; }
  bool enabled() const override { return report_stragglers; }
  void VisitFields(FieldVisitor& visitor) override;
};

class StragglerHook : public Hook {
 public:
  explicit StragglerHook(const StragglerOptions& options) : options_(options) {}

  absl::string_view name() const override { return "straggler"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;

 private:
  void Warn(const at::Tensor& times, int64_t slowest, double ratio, const StepContext& context) const;

  const StragglerOptions options_;
  PerfStats begin_;           // of the window
  PerfStats last_;            // of the last update
  std::vector<double> work_;  // milliseconds of each update of the window
};

absl::Status RegisterStragglerHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_STRAGGLER_HOOK_H_
