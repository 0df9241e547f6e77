// SPDX-License-Identifier: Apache-2.0
//
// Keeps chosen parameters as they are for the first iterations (VISSL's MODEL.TEMP_FROZEN_PARAMS_ITER_MAP; SwAV freezes
// its prototypes for the first epoch): their gradients are dropped after backward, and an optimizer leaves a parameter
// without a gradient alone, weight decay and momentum included. Stage kMutate.
//
// Names are those of Model::Parameters; VISSL's spellings of the same ("module." in front, "_feature_blocks.",
// "_fsdp_wrapped_module.", "_fpw_module." inside) are understood.
#ifndef SSL_HOOKS_FREEZE_PARAMETERS_HOOK_H_
#define SSL_HOOKS_FREEZE_PARAMETERS_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

// MODEL.TEMP_FROZEN_PARAMS_ITER_MAP.
struct FreezeParametersOptions : public ComponentOptions {
  ConfigNode entries = ConfigNode::List();  // [[parameter, iterations], ...]

  absl::string_view section() const override { return "MODEL"; }
  bool enabled() const override { return !entries.is_null() && !(entries.is_list() && entries.items().empty()); }
  void VisitFields(FieldVisitor& visitor) override;
};

struct FrozenParameter {
  std::string name;
  int64_t iterations = 0;  // frozen while fewer updates are done
  std::string place;       // of the entry, for messages: "file:line: config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP"
};

// The entries of a list [[name, iterations], ...], which is the value of the key `path`; InvalidArgument lists every
// entry of another form.
absl::StatusOr<std::vector<FrozenParameter>> ParseFrozenParameters(const ConfigNode& list, absl::string_view path);

class FreezeParametersHook : public Hook {
 public:
  explicit FreezeParametersHook(std::vector<FrozenParameter> frozen) : frozen_(std::move(frozen)) {}

  absl::string_view name() const override { return "freeze_parameters"; }
  HookStage stage() const override { return HookStage::kMutate; }
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  std::vector<PlannedAction> Plan() const override;

  // How many are frozen.
  int64_t RecordingKey(const StepContext& context) const override;

  // NotFound, with the nearest name, for each entry that names no parameter.
  absl::Status OnStart(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;

 private:
  std::vector<FrozenParameter> frozen_;
  std::vector<at::Tensor> parameters_;  // of frozen_, at the same positions
};

absl::Status RegisterFreezeParametersHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_FREEZE_PARAMETERS_HOOK_H_
