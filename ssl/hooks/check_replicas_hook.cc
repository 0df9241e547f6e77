// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_replicas_hook.h"

#include <memory>

#include "ssl/core/model_replicas.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckReplicas(const CheckReplicasOptions& options, const ConfigNode& params,
                                                        const BuildContext& context) {
  return std::make_unique<CheckReplicasHook>(options);
}

}  // namespace

absl::string_view CheckReplicasOptions::section() const { return kHookList; }

void CheckReplicasOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("freq", &freq, Doc("updates between two comparisons").AtLeast(1).MayChange());
}

std::vector<PlannedAction> CheckReplicasHook::Plan() const {
  constexpr char kWhat[] = "compares the ranks' parameters";
  return {{kWhat, {Cadence::Unit::kUpdate, options_.freq, 1, 0, false}},
          {kWhat, {Cadence::Unit::kEpoch, 1, 1, 0, false}}};
}

absl::Status CheckReplicasHook::OnStep(StepContext& context) {
  const bool is_due = context.state.training && context.state.iteration % options_.freq == 0;
  return is_due ? CheckParametersAreEqual(context.model, context.communicator) : absl::OkStatus();
}

// What was compared in the phase's last step is so still.
absl::Status CheckReplicasHook::OnPhaseEnd(StepContext& context) {
  const bool is_new = context.state.training && context.state.iteration % options_.freq != 0;
  return is_new ? CheckParametersAreEqual(context.model, context.communicator) : absl::OkStatus();
}

absl::Status RegisterCheckReplicasHook(Registries* registries) {
  return RegisterHook(registries, {"check_replicas", "ends a run whose ranks no longer have the same weights"},
                      &MakeCheckReplicas);
}

}  // namespace ssl
