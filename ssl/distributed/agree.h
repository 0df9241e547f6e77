// SPDX-License-Identifier: Apache-2.0
//
// What all ranks have to know alike: without it, a rank that failed or stopped alone would leave the others waiting for
// it in the next collective operation. All of these are collective, with the errors of Communicator.
//
//   SSL_RETURN_IF_ERROR(AgreeOnStatus(Write(path), "writing metrics", communicator));
#ifndef SSL_DISTRIBUTED_AGREE_H_
#define SSL_DISTRIBUTED_AGREE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// status: this rank's; Cancelled is a stop. Returns this rank's own failure; Aborted, with the lowest rank that failed,
// its host and its message, when only others did; Cancelled on all ranks when any was stopped and none failed;
// otherwise OK. `what` opens what is said of another rank: "<what> failed on rank 1 (on gpu2): <its message>".
absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator);

// Whether `status` is the Cancelled of AgreeOnStatus that tells of another rank's stop: nobody need have asked this one.
bool IsStopOfAnotherRank(const absl::Status& status);

// Whether it holds on any rank.
absl::StatusOr<bool> AnyRank(bool here, Communicator& communicator);

// Makes the text of rank `root` that of all ranks.
absl::Status BroadcastText(int64_t root, std::string* text, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_AGREE_H_
