// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/hook_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/step_context.h"

namespace ssl {
namespace {

constexpr const char* kStageNames[] = {"timing", "guard", "mutate", "observe", "report", "persist"};

}  // namespace

absl::Status HookList::Add(std::unique_ptr<Hook> hook) {
  for (const auto& other : hooks_) {
    if (other->instance_name() == hook->instance_name()) {
      return absl::AlreadyExistsError(absl::StrCat("hook '", hook->instance_name(), "' is added twice"));
    }
  }
  const auto position =
      std::upper_bound(hooks_.begin(), hooks_.end(), hook->stage(),
                       [](HookStage stage, const std::unique_ptr<Hook>& other) { return stage < other->stage(); });
  hooks_.insert(position, std::move(hook));
  return absl::OkStatus();
}

absl::Status HookList::Call(Hook& hook, const char* event, const StepContext& context,
                            absl::FunctionRef<absl::Status()> handler) {
  running_ = std::string(hook.instance_name());
  const absl::Status status = GuardTorch("exception", handler);
  running_.clear();
  return status.ok() ? status : Attribute(std::string(hook.instance_name()), event, context, status);
}

absl::Status HookList::Attribute(const std::string& hook, const char* event, const StepContext& context,
                                 const absl::Status& error) {
  if (failure_.hook.empty()) failure_ = {hook, event};
  return Annotate(error, absl::StrCat("hook '", hook, "' (", event, ", iteration ", context.state.iteration, ")"));
}

absl::Status HookList::Run(const HookEvent& event, StepContext& context) {
  for (const auto& hook : hooks_) {
    if (only_.has_value() && hook->within_update() != *only_) continue;
    SSL_RETURN_IF_ERROR(Call(*hook, event.name, context, [&] { return (hook.get()->*event.handler)(context); }));
  }
  return absl::OkStatus();
}

absl::Status HookList::RunOnEnd(StepContext& context) {
  absl::Status first;
  for (const auto& hook : hooks_) {
    first.Update(Call(*hook, kOnEnd.name, context, [&] { return hook->OnEnd(context); }));
  }
  return first;
}

absl::Status HookList::RunOnException(StepContext& context, const absl::Status& error) {
  absl::Status first;
  for (const auto& hook : hooks_) {
    first.Update(Call(*hook, "OnException", context, [&] { return hook->OnException(context, error); }));
  }
  return first;
}

std::vector<const Hook*> HookList::hooks() const {
  std::vector<const Hook*> hooks;
  for (const auto& hook : hooks_) hooks.push_back(hook.get());
  return hooks;
}

std::string HookList::Order() const {
  std::string order;
  const Hook* previous = nullptr;
  for (const auto& hook : hooks_) {
    if (previous != nullptr && previous->stage() == hook->stage()) {
      absl::StrAppend(&order, ", ", hook->instance_name());
    } else {
      absl::StrAppend(&order, previous == nullptr ? "" : "; ", kStageNames[static_cast<int>(hook->stage())], ": ",
                      hook->instance_name());
    }
    previous = hook.get();
  }
  return order;
}

void HookList::VisitState(StateVisitor& visitor) {
  visitor.ScopesMayDiffer();
  for (const auto& hook : hooks_) visitor.Scope(hook->instance_name(), *hook);
}

}  // namespace ssl
