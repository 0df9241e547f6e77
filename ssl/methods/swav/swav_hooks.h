// SPDX-License-Identifier: Apache-2.0
//
// The parts of SwAV that happen outside of the loss. Each hook is bound to its method, which outlives it.
#ifndef SSL_METHODS_SWAV_SWAV_HOOKS_H_
#define SSL_METHODS_SWAV_SWAV_HOOKS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"

namespace ssl {

class SwavMethod;
struct StepContext;

// Before the loss: scores of the queued embeddings with the current prototypes. Counts the batches of each update.
class SwavQueueHook : public Hook {
 public:
  explicit SwavQueueHook(SwavMethod* method) : method_(method) {}

  absl::string_view name() const override { return "swav_queue"; }
  HookStage stage() const override { return HookStage::kMutate; }
  std::vector<PlannedAction> Plan() const override;
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  absl::Status OnBatchStart(StepContext& context) override;
  absl::Status OnForward(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;

 private:
  SwavMethod* const method_;
};

// After each update: prototypes back to unit length (normalize_last_layer). Like VISSL, it leaves the initial ones.
class NormalizePrototypesHook : public Hook {
 public:
  explicit NormalizePrototypesHook(SwavMethod* method) : method_(method) {}

  absl::string_view name() const override { return "normalize_prototypes"; }
  HookStage stage() const override { return HookStage::kMutate; }
  std::vector<PlannedAction> Plan() const override;
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  absl::Status OnUpdate(StepContext& context) override;

 private:
  SwavMethod* const method_;
};

// When an error ends training: logs which crops' scores or assignments are not finite.
class SwavFailureReportHook : public Hook {
 public:
  explicit SwavFailureReportHook(SwavMethod* method) : method_(method) {}

  absl::string_view name() const override { return "swav_failure_report"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnException(StepContext& context, const absl::Status& error) override;

 private:
  SwavMethod* const method_;
};

}  // namespace ssl

#endif  // SSL_METHODS_SWAV_SWAV_HOOKS_H_
