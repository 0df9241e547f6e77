// SPDX-License-Identifier: Apache-2.0
//
// The hooks of a run in the order in which they are called.
#ifndef SSL_CORE_HOOK_LIST_H_
#define SSL_CORE_HOOK_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/hook.h"
#include "ssl/core/stateful.h"

namespace ssl {

// Owns its hooks. Sorted by stage; hooks of one stage keep the order in which they were added.
class HookList : public Stateful {
 public:
  using Event = absl::Status (Hook::*)(StepContext&);

  // AlreadyExists when a hook of that name is in the list.
  absl::Status Add(std::unique_ptr<Hook> hook);

  // Calls `event` (such as &Hook::OnStep) of every hook; the first error, with the hook's name, ends it.
  absl::Status Run(Event event, StepContext& context);

  // OnEnd and OnException reach every hook, whatever the others return; the first error is returned.
  absl::Status RunOnEnd(StepContext& context);
  absl::Status RunOnException(StepContext& context, const absl::Status& error);

  // "timing: a, b; guard: check_nan; ...", for the log at the start of a run.
  std::string Order() const;

  // Each hook's state in the scope of its name.
  void VisitState(StateVisitor& visitor) override;

 private:
  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace ssl

#endif  // SSL_CORE_HOOK_LIST_H_
