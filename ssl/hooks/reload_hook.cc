// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/reload_hook.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kMiniEpochs[] = "DATA.TRAIN.MINI_EPOCHS";

// The entry's value is the run's by now; without one, the run has its own.
absl::StatusOr<std::unique_ptr<Hook>> MakeReload(const ReloadOptions& options, const ConfigNode& params,
                                                 const BuildContext& context) {
  const ConfigNode* of_run = context.config.FindPath(kMiniEpochs);
  int64_t mini_epochs = options.mini_epoch;
  if (of_run != nullptr) {
    SSL_ASSIGN_OR_RETURN(mini_epochs, of_run->AsInt());
  }
  return std::make_unique<ReloadHook>(mini_epochs);
}

}  // namespace

absl::string_view ReloadOptions::section() const { return kHookList; }

std::map<std::string, std::string> ReloadOptions::run_keys() const {
  return {{"group", "DATA.TRAIN.MINI_EPOCH_GROUPS"}, {"mini_epoch", kMiniEpochs}};
}

void ReloadOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("group", &group,
                Doc("sets DATA.TRAIN.MINI_EPOCH_GROUPS: blocks within which alone it is shuffled").AtLeast(1));
  visitor.Field("mini_epoch", &mini_epoch,
                Doc("sets DATA.TRAIN.MINI_EPOCHS: epochs that visit the data set once").AtLeast(1));
}

std::vector<PlannedAction> ReloadHook::Plan() const {
  // Of the end of each epoch, the last one too, which no other part follows.
  const std::string what =
      mini_epochs_ > 1 ? absl::StrCat("finishes one of ", mini_epochs_, " parts of the data") : "finishes the data";
  return {{what, {Cadence::Unit::kEpoch, 1, 1, 0, false}}};
}

absl::Status ReloadHook::OnPhaseStart(StepContext& context) {
  if (!context.state.training || mini_epochs_ == 1 || context.communicator.rank() != 0) return absl::OkStatus();
  const int64_t epoch = context.state.train_phase_index;
  SSL_LOG(INFO) << "reload: epoch " << epoch + 1 << " visits part " << epoch % mini_epochs_ + 1 << " of "
                << mini_epochs_ << " of the data set, in pass " << epoch / mini_epochs_ + 1;
  return absl::OkStatus();
}

absl::Status RegisterReloadHook(Registries* registries) {
  return RegisterHook(registries, {"reload", "makes each epoch one of several parts of the data set"}, &MakeReload);
}

}  // namespace ssl
