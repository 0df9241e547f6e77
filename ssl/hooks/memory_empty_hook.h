// SPDX-License-Identifier: Apache-2.0
//
// Gives memory that nobody uses back to the system every `freq` updates, not before the first: the blocks that tensor
// memory keeps (ssl/core/tensor_memory.h) and what the C library's allocator holds. The peak of tensor memory starts
// anew, so that it is that of the window. For runs beside other programs; the next step fetches the blocks again, which
// takes time. United Perception's memory_empty. Stage kObserve. No state.
#ifndef SSL_HOOKS_MEMORY_EMPTY_HOOK_H_
#define SSL_HOOKS_MEMORY_EMPTY_HOOK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"

namespace ssl {

// The kwargs of an entry of config.hooks; United Perception's.
struct MemoryEmptyOptions : public OncePerRunOptions {
  int64_t freq = 100;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  void VisitFields(FieldVisitor& visitor) override;
};

class MemoryEmptyHook : public Hook {
 public:
  explicit MemoryEmptyHook(const MemoryEmptyOptions& options) : options_(options) {}

  absl::string_view name() const override { return "memory_empty"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStep(StepContext& context) override;

 private:
  const MemoryEmptyOptions options_;
};

absl::Status RegisterMemoryEmptyHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_MEMORY_EMPTY_HOOK_H_
