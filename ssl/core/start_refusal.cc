// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/start_refusal.h"

#include <memory>
#include <utility>

#include "ssl/core/session.h"
#include "ssl/distributed/preview_communicator.h"

namespace ssl {

absl::StatusOr<ResumePlan> CheckWholeResume(const ConfigNode& config, const Registries& registries,
                                            FileSystem& file_system, Communicator& communicator) {
  absl::StatusOr<ResumePlan> plan = CheckResume(config, registries.options, file_system, communicator);
  if (!absl::IsInvalidArgument(plan.status())) return plan;
  const std::unique_ptr<Communicator> alone = MakePreviewCommunicator(communicator.size());
  Registries without_hooks = registries;
  without_hooks.configured_hooks = nullptr;
  SessionOptions options;
  options.communicator = alone.get();
  options.file_system = &file_system;
  options.only_preview = true;
  const absl::Status whole = Session::Create(config, without_hooks, std::move(options)).status();
  return whole.ok() ? plan : whole;
}

}  // namespace ssl
