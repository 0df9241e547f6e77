// SPDX-License-Identifier: Apache-2.0
//
// Tells once how much memory a run takes (VISSL's LogGpuMemoryHook and DumpMemoryOnException, for a CPU): the process,
// now and at its peak, and the tensors of the model, of the gradients and of the optimizer, in one line. Stage kReport.
//
//   memory after 1 step: process 774.7 MiB, 859.3 MiB at its peak; model 90.0 MiB, gradients 89.7 MiB,
//   optimizer 89.7 MiB
//
// With PRINT_MEMORY_SUMMARY, rank 0 writes it after the train step LOG_ITERATION_NUM of this process, counted from 0.
// With DUMP_MEMORY_ON_EXCEPTION, each rank writes it when an error ends the run. Batch statistics belong to the model.
#ifndef SSL_HOOKS_MEMORY_SUMMARY_HOOK_H_
#define SSL_HOOKS_MEMORY_SUMMARY_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

// The section HOOKS.MEMORY_SUMMARY.
struct MemorySummaryOptions : public ComponentOptions {
  bool print_memory_summary = true;
  int64_t log_iteration_num = 0;
  bool dump_memory_on_exception = false;

  absl::string_view section() const override { return "HOOKS.MEMORY_SUMMARY"; }
  bool enabled() const override { return print_memory_summary || dump_memory_on_exception; }
  void VisitFields(FieldVisitor& visitor) override;
};

class MemorySummaryHook : public Hook {
 public:
  explicit MemorySummaryHook(const MemorySummaryOptions& options) : options_(options) {}

  absl::string_view name() const override { return "memory_summary"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStep(StepContext& context) override;
  absl::Status OnException(StepContext& context, const absl::Status& error) override;

 private:
  const MemorySummaryOptions options_;
};

absl::Status RegisterMemorySummaryHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_MEMORY_SUMMARY_HOOK_H_
