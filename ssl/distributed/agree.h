// SPDX-License-Identifier: Apache-2.0
//
// One outcome for all ranks: without it, a rank that failed alone would leave the others waiting for it in the next
// collective operation.
#ifndef SSL_DISTRIBUTED_AGREE_H_
#define SSL_DISTRIBUTED_AGREE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Returns OK when `status` is OK on every rank, this rank's own error when it has one, and otherwise Aborted with
// "<what> failed on another rank". Collective.
absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_AGREE_H_
