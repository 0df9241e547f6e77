// SPDX-License-Identifier: Apache-2.0
//
// The hooks of a run in the order in which they are called, and the one place that calls them.
//
// Whatever a handler throws becomes a Status. Each error says where it comes from:
//   hook 'ema' (OnUpdate, iteration 12): exception: out of memory
#ifndef SSL_CORE_HOOK_LIST_H_
#define SSL_CORE_HOOK_LIST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ssl/core/hook.h"
#include "ssl/core/stateful.h"

namespace ssl {

// A handler of Hook and its name.
struct HookEvent {
  const char* name;
  absl::Status (Hook::*handler)(StepContext&);
};

inline constexpr HookEvent kOnStart = {"OnStart", &Hook::OnStart};
inline constexpr HookEvent kOnPhaseStart = {"OnPhaseStart", &Hook::OnPhaseStart};
inline constexpr HookEvent kOnBatchStart = {"OnBatchStart", &Hook::OnBatchStart};
inline constexpr HookEvent kOnForward = {"OnForward", &Hook::OnForward};
inline constexpr HookEvent kOnLossAndMeter = {"OnLossAndMeter", &Hook::OnLossAndMeter};
inline constexpr HookEvent kOnBackward = {"OnBackward", &Hook::OnBackward};
inline constexpr HookEvent kOnUpdate = {"OnUpdate", &Hook::OnUpdate};
inline constexpr HookEvent kOnStep = {"OnStep", &Hook::OnStep};
inline constexpr HookEvent kOnPhaseEnd = {"OnPhaseEnd", &Hook::OnPhaseEnd};
inline constexpr HookEvent kOnEnd = {"OnEnd", &Hook::OnEnd};

// Which handler failed first; empty while none has.
struct HookFailure {
  std::string hook;
  std::string event;
};

// Owns its hooks. Sorted by stage; hooks of one stage keep the order in which they were added.
class HookList : public Stateful {
 public:
  // AlreadyExists when a hook of that instance name is in the list.
  absl::Status Add(std::unique_ptr<Hook> hook);

  // While it lives, Run calls the hooks of one kind alone (graph_train_step). One at a time.
  class Only {
   public:
    Only(HookList& hooks, WithinUpdate kind) : hooks_(hooks) { hooks_.only_ = kind; }
    ~Only() { hooks_.only_.reset(); }
    Only(const Only&) = delete;
    Only& operator=(const Only&) = delete;

   private:
    HookList& hooks_;
  };

  // Calls the handler of `event` of every hook; the first error ends it.
  absl::Status Run(const HookEvent& event, StepContext& context);

  // OnEnd and OnException reach every hook, whatever the others return or throw; the first error is returned.
  absl::Status RunOnEnd(StepContext& context);
  absl::Status RunOnException(StepContext& context, const absl::Status& error);

  // The instance name of the hook whose handler runs; "" between handlers.
  const std::string& running() const { return running_; }
  // `error` as one of that hook, in that event: it is the hook's failure, when it is the first.
  absl::Status Attribute(const std::string& hook, const char* event, const StepContext& context,
                         const absl::Status& error);

  const HookFailure& failure() const { return failure_; }
  // What Run returned last is no failure of the run.
  void ForgetFailure() { failure_ = {}; }

  // In the order in which they are called.
  std::vector<const Hook*> hooks() const;

  // "timing: a, b; guard: check_nan; ...", for the log at the start of a run.
  std::string Order() const;

  // Each hook's state in the scope of its instance name. A restored state may lack that of some hooks, and hold that of
  // others.
  void VisitState(StateVisitor& visitor) override;

 private:
  absl::Status Call(Hook& hook, const char* event, const StepContext& context,
                    absl::FunctionRef<absl::Status()> handler);

  std::vector<std::unique_ptr<Hook>> hooks_;
  std::string running_;
  std::optional<WithinUpdate> only_;
  HookFailure failure_;
};

}  // namespace ssl

#endif  // SSL_CORE_HOOK_LIST_H_
