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

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// status: this rank's; Cancelled is a stop. Returns this rank's own failure; Aborted, with the lowest rank that failed,
// its host and its message, when only others did; Cancelled on all ranks when any was stopped and none failed;
// otherwise OK. `what` opens what is said of another rank: "<what> failed on rank 1 (on gpu2): <its message>".
absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator);

// The same for what `work` returns, when it may take longer than an operation waits for other ranks: what one rank does
// alone, such as a file that it writes or a classifier that it trains. Until the last rank is done all meet in one
// reduction after the other, on a thread of its own, so that only a process that ends, or does not answer for as long
// as one operation may take, ends the wait. `work` neither uses the communicator nor draws from LibTorch's generator:
// virtual ranks (virtual_world.h) go on beside it. Its exceptions are errors.
absl::Status AgreeOnWork(absl::FunctionRef<absl::Status()> work, absl::string_view what, Communicator& communicator);

// The same for work of rank 0 alone.
absl::Status OnRankZero(absl::FunctionRef<absl::Status()> work, absl::string_view what, Communicator& communicator);

// Whether `status` is this rank's own failure in one of these three, in which a lower rank of this host has failed with
// the same words: said once, they are enough.
bool IsSaidOnThisHost(const absl::Status& status);

// Whether `status` is an error of one of these three: all ranks have met and know of it, and none waits for this one.
// Annotate keeps that.
bool IsKnownToAllRanks(const absl::Status& status);

// Whether `status` is the Cancelled of AgreeOnStatus that tells of another rank's stop: nobody need have asked this
// one.
bool IsStopOfAnotherRank(const absl::Status& status);

// Whether it holds on any rank.
absl::StatusOr<bool> AnyRank(bool here, Communicator& communicator);

// Makes the text of rank `root` that of all ranks.
absl::Status BroadcastText(int64_t root, std::string* text, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_AGREE_H_
