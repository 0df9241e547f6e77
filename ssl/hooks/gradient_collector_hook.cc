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
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/register_component.h"
#include "ssl/optim/name_patterns.h"

namespace ssl {
namespace {

constexpr double kTwoNorm = 2.0;
constexpr char kNorm[] = "norm";
constexpr char kHistogram[] = "histogram";
constexpr char kModules[] = "hook_module";
constexpr char kParameter[] = "parameter";
constexpr char kOutput[] = "output";
constexpr char kInput[] = "input";

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

bool IsShard(Model& model, const at::Tensor& parameter) {
  return model.parameter_shards() != nullptr && model.parameter_shards()->IsShard(parameter);
}

// Of the whole gradients, where ranks share them out. Collective then.
absl::StatusOr<std::vector<at::Tensor>> NormsOf(const std::vector<at::Tensor>& gradients,
                                                const std::vector<at::Tensor>& parameters, StepContext& context) {
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, kTwoNorm);
  if (context.model.parameter_shards() == nullptr) return norms;
  SSL_ASSIGN_OR_RETURN(const at::Tensor over_ranks, NormOverShards(at::stack(norms), kTwoNorm, context.communicator));
  for (size_t i = 0; i < norms.size(); ++i) {
    if (IsShard(context.model, parameters[i])) norms[i] = over_ranks[static_cast<int64_t>(i)];
  }
  return norms;
}

at::Tensor Gathered(const at::Tensor& gradient, const at::Tensor& parameter, Model& model) {
  if (!IsShard(model, parameter)) return gradient;
  ParameterShards& shards = *model.parameter_shards();
  return shards.Whole(gradient, shards.WholeRows(parameter));
}

// The setting that makes parts of the model run again in backward; "" for none.
std::string WhatRecomputes(const ConfigNode& config) {
  constexpr char kStatic[] = "MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING";
  const ConfigNode* is_static = config.FindPath(kStatic);
  if (is_static != nullptr && is_static->AsBool().value_or(false)) return absl::StrCat("config.", kStatic, " is true");
  const absl::StatusOr<std::vector<HookEntry>> entries = ReadHookEntries(config);
  for (const HookEntry& entry : entries.ok() ? *entries : std::vector<HookEntry>()) {
    const ConfigNode* enable = entry.kwargs.Find("enable");
    const bool is_off = enable != nullptr && !enable->AsBool().value_or(true);
    if (entry.type == "memory_checkpoint" && !is_off) return absl::StrCat(entry.path, " is memory_checkpoint");
  }
  return "";
}

// What runs again is one operation of the graph, with one gradient for all modules in it.
absl::Status CheckNotRecomputed(const GradientCollectorOptions& options, const ConfigNode& params,
                                const BuildContext& context) {
  const std::string why = options.grad_type == kParameter ? "" : WhatRecomputes(context.config);
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(params, "grad_type", context), " is ", options.grad_type, ", and ", why,
                   ": modules of a part that runs again in backward have no gradients of their own; expected ",
                   kParameter, ", or a run without activation checkpointing"));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradientCollector(const GradientCollectorOptions& options,
                                                            const ConfigNode& params, const BuildContext& context) {
  if (options.measure == kHistogram && options.grad_type != kParameter) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, "measure", context), " is histogram, and ",
                                                   PathOfKey("grad_type", context), " is ", options.grad_type,
                                                   "; expected norm, which alone is measured of modules"));
  }
  SSL_RETURN_IF_ERROR(CheckNotRecomputed(options, params, context));
  const absl::StatusOr<NamePatterns> patterns = NamePatterns::Make(options.hook_module);
  const std::string place = PlaceOf(params, kModules, context);
  if (patterns.ok()) return std::make_unique<GradientCollectorHook>(options, place);
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", patterns.status().message()));
}

}  // namespace

absl::string_view GradientCollectorOptions::section() const { return kHookList; }

void GradientCollectorOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(
      kModules, &hook_module,
      Doc("parts of the names of parameters (trunk.layer4), or patterns (\\.bias$); empty: all of them").MayBeOne());
  visitor.Field("grad_type", &grad_type,
                Doc("whose gradients: of the parameters (ours), or of the output or input of their modules")
                    .OneOf({kParameter, kOutput, kInput}));
  visitor.Field("measure", &measure, Doc("what is reported of each parameter (ours)").OneOf({kNorm, kHistogram}));
  visitor.Field("freq", &freq, Doc("updates between two looks (ours)").AtLeast(1));
}

std::vector<PlannedAction> GradientCollectorHook::Plan() const {
  return {{"reports gradients", {Cadence::Unit::kUpdate, options_.freq, 1, 0, false}}};
}

absl::Status GradientCollectorHook::OnStart(StepContext& context) {
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
  modules_ = nullptr;
  if (options_.grad_type == kParameter) return absl::OkStatus();
  // Blocks gather their weights anew for each pass: what it looks for in the graph is not there.
  SSL_RETURN_IF_ERROR(CheckNotSharded(context.model, absl::StrCat(instance_name(), " of ", options_.grad_type, "s")));
  std::vector<std::string> watched;
  for (const NamedParameter& parameter : parameters_) watched.push_back(parameter.name);
  const auto kind = options_.grad_type == kInput ? ModuleGradients::Kind::kInput : ModuleGradients::Kind::kOutput;
  modules_ = std::make_unique<ModuleGradients>(kind, all, watched);
  return absl::OkStatus();
}

bool GradientCollectorHook::IsDue(const StepContext& context) const {
  return context.state.training && (context.state.iteration + 1) % options_.freq == 0;
}

std::string GradientCollectorHook::Prefix() const {
  return instance_name() == name() ? "Gradients/" : absl::StrCat("Gradients/", instance_name(), "/");
}

absl::Status GradientCollectorHook::OnLossAndMeter(StepContext& context) {
  if (modules_ == nullptr || !IsDue(context)) return absl::OkStatus();
  modules_->Watch(context.loss, context.batches_per_update);
  WarnOfShared(context);
  return absl::OkStatus();
}

absl::Status GradientCollectorHook::OnBackward(StepContext& context) {
  if (!IsDue(context)) return absl::OkStatus();
  if (modules_ != nullptr) return ReportModules(context);
  // A histogram waits for the device anyway.
  if (options_.measure == kHistogram && SkipsUpdate(context.found_inf)) return absl::OkStatus();
  return ReportParameters(context);
}

// What no setting of ours tells: a host's trunk, or its recompute policy.
void GradientCollectorHook::WarnOfShared(StepContext& context) {
  if (has_warned_ || modules_->shared().empty() || context.communicator.rank() != 0) return;
  has_warned_ = true;
  SSL_LOG(WARNING) << instance_name() << ": " << absl::StrJoin(modules_->shared(), ", ")
                   << " are left out: each is one operation of backward together with other modules, such as a part "
                   << "that runs again in backward, and has no gradient of its own";
}

// Takes them in any case, so that those of an update that is skipped do not count for the next.
absl::Status GradientCollectorHook::ReportModules(StepContext& context) {
  SSL_ASSIGN_OR_RETURN(const auto norms, modules_->Take(context.communicator));
  for (const auto& [module, norm] : norms) {
    context.metrics.AddUnless(context.found_inf, absl::StrCat(Prefix(), module, "/", options_.grad_type), norm);
  }
  return absl::OkStatus();
}

absl::Status GradientCollectorHook::ReportParameters(StepContext& context) const {
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> parameters;
  std::vector<std::string> names;
  for (const NamedParameter& parameter : parameters_) {
    if (!parameter.value.grad().defined()) continue;
    gradients.push_back(parameter.value.grad());
    parameters.push_back(parameter.value);
    names.push_back(parameter.name);
  }
  if (gradients.empty()) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> norms, NormsOf(gradients, parameters, context));
  for (size_t i = 0; i < norms.size(); ++i) {
    const std::string name = absl::StrCat(Prefix(), names[i]);
    if (options_.measure == kNorm) context.metrics.AddUnless(context.found_inf, name, norms[i]);
    if (options_.measure != kHistogram) continue;
    const at::Tensor whole = Gathered(gradients[i], parameters[i], context.model);
    if (context.communicator.rank() == 0) context.metrics.AddHistogram(name, whole);
  }
  context.metrics.AddUnless(context.found_inf, absl::StrCat(Prefix(), "together"),
                            at::linalg_vector_norm(at::stack(norms), kTwoNorm));
  return absl::OkStatus();
}

absl::Status RegisterGradientCollectorHook(Registries* registries) {
  return RegisterHook(registries,
                      {"gradient_collector", "reports the norms of the gradients of chosen parameters or modules"},
                      &MakeGradientCollector);
}

}  // namespace ssl
