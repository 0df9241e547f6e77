// SPDX-License-Identifier: Apache-2.0
//
// Mini-epochs: each epoch visits one of `mini_epoch` parts of the data set, for data sets of which a whole pass takes
// too long between two reports or checkpoints. An entry sets config.DATA.TRAIN.MINI_EPOCHS and MINI_EPOCH_GROUPS, by
// which the sampler deals (ssl/data/samplers/mini_epoch_sampler.h); the hook tells at the start of each epoch which
// part it is. United Perception's reload, which makes its loaders anew for that, and has mini_epoch among its data
// set's keys. Stage kReport. No state.
#ifndef SSL_HOOKS_RELOAD_HOOK_H_
#define SSL_HOOKS_RELOAD_HOOK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/run_keys.h"

namespace ssl {

// The kwargs of an entry of config.hooks; United Perception's `group`, and its data sets' `mini_epoch`.
struct ReloadOptions : public RunKeysOptions {
  int64_t group = 1;
  int64_t mini_epoch = 1;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  std::map<std::string, std::string> run_keys() const override;
  void VisitFields(FieldVisitor& visitor) override;
};

class ReloadHook : public Hook {
 public:
  // mini_epochs: parts of the data set, at least 1.
  explicit ReloadHook(int64_t mini_epochs) : mini_epochs_(mini_epochs) {}

  absl::string_view name() const override { return "reload"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnPhaseStart(StepContext& context) override;

 private:
  const int64_t mini_epochs_;
};

absl::Status RegisterReloadHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_RELOAD_HOOK_H_
