// SPDX-License-Identifier: Apache-2.0
//
// This asks whether a training may start, before it does: all that refuses it is told at once.
#ifndef SSL_CORE_START_REFUSAL_H_
#define SSL_CORE_START_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/resume_plan.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

// CheckResume (resume_plan.h). What it refuses by the settings alone is told whole: the data is opened, so that what is
// wrong with it comes first, and what differs in it is named as well. config: resolved. Rank 0; `communicator` may be
// of a world that is only imagined (preview_communicator.h).
absl::StatusOr<ResumePlan> CheckWholeResume(const ConfigNode& config, const Registries& registries,
                                            FileSystem& file_system, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_CORE_START_REFUSAL_H_
