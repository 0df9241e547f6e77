// SPDX-License-Identifier: Apache-2.0
//
// Compares what the ranks train every `freq` updates and at the end of each train phase, by checksums of their
// parameters: copies that have drifted apart, by a host's hook that acts on one rank alone, or by a fault of memory,
// end the run before it saves what the phase's end asks for, and before it is finished. What is saved within a phase
// between two comparisons, at a stop for example, is not looked at. The start of a run compares them in any case.
// Shards of parameters and buffers are each rank's own and left out. Collective; reads all parameters, and waits for
// the device. Ours. Stage kGuard. No state.
#ifndef SSL_HOOKS_CHECK_REPLICAS_HOOK_H_
#define SSL_HOOKS_CHECK_REPLICAS_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// The kwargs of an entry of config.hooks.
struct CheckReplicasOptions : public OncePerRunOptions {
  int64_t freq = 1000;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

class CheckReplicasHook : public Hook {
 public:
  explicit CheckReplicasHook(const CheckReplicasOptions& options) : options_(options) {}

  absl::string_view name() const override { return "check_replicas"; }
  HookStage stage() const override { return HookStage::kGuard; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // DataLoss, with the first parameters, on a rank that has others than rank 0, and Aborted on the rest.
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnPhaseEnd(StepContext& context) override;

 private:
  const CheckReplicasOptions options_;
};

absl::Status RegisterCheckReplicasHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_CHECK_REPLICAS_HOOK_H_
