// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/freeze_parameters_hook.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/plan_once.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

// The name without the parts that only VISSL's wrappers add.
std::string Plain(absl::string_view name) {
  return absl::StrReplaceAll(
      name, {{"_fsdp_wrapped_module.", ""}, {"_fpw_module.", ""}, {"_feature_blocks.", ""}, {"module.", ""}});
}

constexpr char kEntries[] = "TEMP_FROZEN_PARAMS_ITER_MAP";

absl::StatusOr<FrozenParameter> ParseEntry(const ConfigNode& entry, absl::string_view path) {
  const std::string place = absl::StrCat(entry.location().ToString(), ": ", path);
  const auto wrong = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(place, " has the entry ", entry.Describe(),
                     ", expected [name of a parameter, number of iterations of at least 0]"));
  };
  if (entry.items().size() != 2 || !entry.items()[0].is_scalar()) return wrong();
  const absl::StatusOr<int64_t> iterations = entry.items()[1].AsInt();
  if (!iterations.ok() || *iterations < 0) return wrong();
  return FrozenParameter{entry.items()[0].text(), *iterations, place};
}

absl::StatusOr<std::unique_ptr<Hook>> MakeFreezeParameters(const FreezeParametersOptions& options,
                                                           const ConfigNode& params, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(std::vector<FrozenParameter> frozen,
                       ParseFrozenParameters(options.entries, PathOfKey(kEntries, context)));
  return std::make_unique<FreezeParametersHook>(std::move(frozen));
}

}  // namespace

absl::StatusOr<std::vector<FrozenParameter>> ParseFrozenParameters(const ConfigNode& list, absl::string_view path) {
  if (!list.is_list() && !list.is_null()) {
    return absl::InvalidArgumentError(absl::StrCat(list.location().ToString(), ": ", path, " is ", list.Describe(),
                                                   ", expected a list of [name, iterations]"));
  }
  std::vector<FrozenParameter> frozen;
  std::vector<std::string> problems;
  for (const ConfigNode& entry : list.items()) {
    absl::StatusOr<FrozenParameter> parsed = ParseEntry(entry, path);
    if (parsed.ok()) {
      frozen.push_back(*std::move(parsed));
    } else {
      problems.emplace_back(parsed.status().message());
    }
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return frozen;
}

std::vector<PlannedAction> FreezeParametersHook::Plan() const {
  std::vector<PlannedAction> plan;
  for (const FrozenParameter& parameter : frozen_) {
    if (parameter.iterations < 1) continue;
    plan.push_back({absl::StrCat("frees ", parameter.name), OnceAt(parameter.iterations)});
  }
  return plan;
}

int64_t FreezeParametersHook::RecordingKey(const StepContext& context) const {
  const auto is_frozen = [&](const FrozenParameter& one) { return context.state.iteration < one.iterations; };
  return std::count_if(frozen_.begin(), frozen_.end(), is_frozen);
}

absl::Status FreezeParametersHook::OnStart(StepContext& context) {
  const std::vector<NamedParameter> parameters = context.model.Parameters();
  std::vector<std::string> names;
  for (const NamedParameter& parameter : parameters) names.push_back(Plain(parameter.name));

  std::vector<std::string> problems;
  parameters_.clear();
  for (const FrozenParameter& frozen : frozen_) {
    const auto found = std::find(names.begin(), names.end(), Plain(frozen.name));
    if (found == names.end()) {
      problems.push_back(absl::StrCat(frozen.place, " names '", frozen.name, "', which is no parameter of the model",
                                      DidYouMean(Plain(frozen.name), names)));
      continue;
    }
    parameters_.push_back(parameters[found - names.begin()].value);
  }
  return problems.empty() ? absl::OkStatus() : absl::NotFoundError(absl::StrJoin(problems, "\n"));
}

absl::Status FreezeParametersHook::OnBackward(StepContext& context) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (context.state.iteration < frozen_[i].iterations) parameters_[i].mutable_grad().reset();
  }
  return absl::OkStatus();
}

void FreezeParametersOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(kEntries, &entries, Doc("[[parameter, iterations], ...]"));
}

absl::Status RegisterFreezeParametersHook(Registries* registries) {
  // After what clips gradients: those that it drops belong to their norm, as in VISSL.
  constexpr int kRank = 1;
  return RegisterHook(registries,
                      {"freeze_parameters", "drops gradients of listed parameters for the first iterations", kRank},
                      &MakeFreezeParameters);
}

}  // namespace ssl
