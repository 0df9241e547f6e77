// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/admission.h"

#include <memory>

#include "ssl/core/start_refusal.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/preview_communicator.h"

namespace ssl {

absl::Status CheckAdmission(const ConfigNode& config, const Registries& registries, int64_t ranks,
                            FileSystem& file_system, Communicator& processes) {
  const auto look = [&]() -> absl::Status {
    const std::unique_ptr<Communicator> world = MakePreviewCommunicator(ranks);
    absl::Status status = CheckWholeResume(config, registries, file_system, *world).status();
    const bool refuses = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
    return refuses ? status : absl::OkStatus();
  };
  return OnRankZero(look, "looking at the run that is there", processes);
}

}  // namespace ssl
