// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_empty_hook.h"

#include <malloc.h>

#include <memory>

#include "ssl/core/tensor_memory.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

absl::StatusOr<std::unique_ptr<Hook>> MakeMemoryEmpty(const MemoryEmptyOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  return std::make_unique<MemoryEmptyHook>(options);
}

}  // namespace

absl::string_view MemoryEmptyOptions::section() const { return kHookList; }

void MemoryEmptyOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("freq", &freq, Doc("updates between two times").AtLeast(1));
}

std::vector<PlannedAction> MemoryEmptyHook::Plan() const {
  return {{"gives free memory back", {Cadence::Unit::kUpdate, options_.freq, 1, 0, false}}};
}

absl::Status MemoryEmptyHook::OnStep(StepContext& context) {
  const int64_t iteration = context.state.iteration;
  if (!context.state.training || iteration == 0 || iteration % options_.freq != 0) return absl::OkStatus();
  ReleaseTensorMemory();
  ResetTensorMemoryPeak();
  malloc_trim(0);
  return absl::OkStatus();
}

absl::Status RegisterMemoryEmptyHook(Registries* registries) {
  return RegisterHook(registries, {"memory_empty", "gives memory that nobody uses back to the system"},
                      &MakeMemoryEmpty);
}

}  // namespace ssl
