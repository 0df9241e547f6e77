// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/gradient_collector_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/hooks/register_component.h"
#include "ssl/optim/name_patterns.h"

namespace ssl {
namespace {

constexpr double kTwoNorm = 2.0;
constexpr char kNorm[] = "norm";
constexpr char kHistogram[] = "histogram";
constexpr char kModules[] = "hook_module";

absl::Status CheckMatches(const std::string& entry, const NamePatterns& pattern,
                          const std::vector<NamedParameter>& parameters, const std::string& place) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : parameters) {
    if (pattern.Match(parameter.name)) return absl::OkStatus();
    names.push_back(parameter.name);
  }
  return absl::NotFoundError(
      absl::StrCat(place, " has '", entry, "', which no parameter's name contains", DidYouMean(entry, names)));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradientCollector(const GradientCollectorOptions& options,
                                                            const ConfigNode& params, const BuildContext& context) {
  const absl::StatusOr<NamePatterns> patterns = NamePatterns::Make(options.hook_module);
  const std::string place = PlaceOf(params, kModules, context);
  if (patterns.ok()) return std::make_unique<GradientCollectorHook>(options, place);
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", patterns.status().message()));
}

}  // namespace

absl::string_view GradientCollectorOptions::section() const { return kHookList; }

void GradientCollectorOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(kModules, &hook_module,
                Doc("parts of the names of parameters (trunk.layer4), or patterns (\\.bias$); empty: all of them"));
  visitor.Field("measure", &measure, Doc("what is reported of each parameter (ours)").OneOf({kNorm, kHistogram}));
  visitor.Field("freq", &freq, Doc("updates between two looks (ours)").AtLeast(1));
}

std::vector<PlannedAction> GradientCollectorHook::Plan() const {
  return {{"reports gradients", {Cadence::Unit::kUpdate, options_.freq, 1, 0, false}}};
}

absl::Status GradientCollectorHook::OnStart(StepContext& context) {
  SSL_RETURN_IF_ERROR(CheckNotSharded(context.model, instance_name()));
  const std::vector<NamedParameter> all = context.model.Parameters();
  for (const std::string& entry : options_.hook_module) {
    SSL_ASSIGN_OR_RETURN(const NamePatterns pattern, NamePatterns::Make({entry}));
    SSL_RETURN_IF_ERROR(CheckMatches(entry, pattern, all, place_));
  }
  SSL_ASSIGN_OR_RETURN(const NamePatterns patterns, NamePatterns::Make(options_.hook_module));
  parameters_.clear();
  for (const NamedParameter& parameter : all) {
    if (options_.hook_module.empty() || patterns.Match(parameter.name)) parameters_.push_back(parameter);
  }
  return absl::OkStatus();
}

absl::Status GradientCollectorHook::OnBackward(StepContext& context) {
  const int64_t update = context.state.iteration + 1;
  if (update % options_.freq != 0 || context.skips_update) return absl::OkStatus();
  std::vector<at::Tensor> gradients;
  std::vector<std::string> names;
  for (const NamedParameter& parameter : parameters_) {
    if (!parameter.value.grad().defined()) continue;
    gradients.push_back(parameter.value.grad());
    names.push_back(parameter.name);
  }
  if (gradients.empty()) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, kTwoNorm);
  const std::string prefix =
      instance_name() == name() ? "Gradients/" : absl::StrCat("Gradients/", instance_name(), "/");
  for (size_t i = 0; i < norms.size(); ++i) {
    const std::string name = absl::StrCat(prefix, names[i]);
    if (options_.measure == kNorm) context.metrics.Add(name, norms[i]);
    if (options_.measure == kHistogram && context.communicator.rank() == 0) {
      context.metrics.AddHistogram(name, gradients[i]);
    }
  }
  context.metrics.Add(absl::StrCat(prefix, "together"), at::linalg_vector_norm(at::stack(norms), kTwoNorm));
  return absl::OkStatus();
}

absl::Status RegisterGradientCollectorHook(Registries* registries) {
  return RegisterHook(registries, {"gradient_collector", "reports the norms of the gradients of chosen parameters"},
                      &MakeGradientCollector);
}

}  // namespace ssl
