// SPDX-License-Identifier: Apache-2.0
//
// Norms of the gradients of chosen parameters, every `freq` updates:
//
//   Gradients/<parameter>    of each parameter that an entry of `hook_module` matches
//   Gradients/together       of all of them together
//
// (Gradients/<name>/... of an instance with a name of its own), as the optimizer sees them: averaged over ranks and
// batches of the update, without the loss scale, clipped, and without those that freeze_parameters drops. With
// `measure: histogram`, the first are histograms of the gradients, for which rank 0 waits for the device.
//
// With `grad_type: output` or `input`, the norms are of what goes through the matched parameters' modules in backward
// (ssl/hooks/module_gradients.h), over the update's batches, without the loss scale, before anything is reduced,
// clipped or dropped. The report has the mean of the ranks' norms, and 0 of a module that backward has not come to:
//
//   Gradients/<module>/output
//
// It leaves out a module whose input has no gradient on any rank: images, or what a frozen trunk gives. Parts that run
// again in backward are one operation for all their modules, so that this is refused beside activation checkpointing;
// where a host's own model or policy makes such parts, their modules are left out, with a warning. Collective in the
// updates that it reports.
//
// Nobody waits for the device. An update that overflowed float16 gradients skip has none. United Perception's
// gradient_collector hands gradients of modules to a loss; here their norms go to the metrics. Where ranks share out
// parameters, norms are over all ranks, a histogram gathers one gradient at a time, and those of modules are refused.
// Stage kObserve. No state. Costs a comparison in updates between.
#ifndef SSL_HOOKS_GRADIENT_COLLECTOR_HOOK_H_
#define SSL_HOOKS_GRADIENT_COLLECTOR_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/module_gradients.h"

namespace ssl {

// The kwargs of an entry of config.hooks. hook_module is United Perception's.
struct GradientCollectorOptions : public ComponentOptions {
  // Parts of parameters' names, or RE2 patterns (ssl/optim/name_patterns.h).
  std::vector<std::string> hook_module;
  std::string grad_type = "parameter";
  std::string measure = "norm";
  int64_t freq = 100;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

class GradientCollectorHook : public Hook {
 public:
  // place: of hook_module, for messages: "file:line: config.hooks.0.kwargs.hook_module".
  explicit GradientCollectorHook(GradientCollectorOptions options, std::string place = "hook_module")
      : options_(std::move(options)), place_(std::move(place)) {}

  absl::string_view name() const override { return "gradient_collector"; }
  HookStage stage() const override { return HookStage::kObserve; }
  std::vector<PlannedAction> Plan() const override;

  // NotFound names an entry that matches no parameter, InvalidArgument one that is no pattern.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;

 private:
  bool IsDue(const StepContext& context) const;
  std::string Prefix() const;
  void WarnOfShared(StepContext& context);
  absl::Status ReportModules(StepContext& context);
  absl::Status ReportParameters(StepContext& context) const;

  const GradientCollectorOptions options_;
  const std::string place_;
  std::vector<NamedParameter> parameters_;    // that entries match
  std::unique_ptr<ModuleGradients> modules_;  // null for gradients of parameters
  bool has_warned_ = false;
};

absl::Status RegisterGradientCollectorHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_GRADIENT_COLLECTOR_HOOK_H_
