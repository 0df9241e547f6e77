// SPDX-License-Identifier: Apache-2.0
//
// The part of CheckpointStore that looks for a checkpoint that can be used.
#include <ATen/ops/full.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/agree.h"

namespace ssl {

bool IsDamage(const absl::Status& status) {
  const bool is_failed_read = absl::IsDataLoss(status) && !DetailOf(status, kDetailErrno).empty();  // EIO
  if (is_failed_read) return false;
  return absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsUnimplemented(status);
}

absl::StatusOr<int64_t> CheckpointStore::FindNewestValid(std::string* passed_over) const {
  SSL_ASSIGN_OR_RETURN(std::vector<int64_t> listed, Iterations());
  if (listed.empty()) return absl::NotFoundError(absl::StrCat(options_.directory, ": no checkpoint"));
  while (true) {
    std::string problems;
    const absl::StatusOr<int64_t> newest = NewestValidOf(listed, &problems);
    if (problems.empty()) return newest;
    // What is missing may have been removed by a run that has saved meanwhile. Each round needs another save of it.
    SSL_ASSIGN_OR_RETURN(std::vector<int64_t> now, Iterations());
    if (now.empty()) return RemovedWhileRead();
    if (now == listed && newest.ok() && passed_over != nullptr) {
      *passed_over = absl::StrCat("damaged checkpoint passed over: ", problems, "; using ", StepDirectory(*newest));
    }
    if (now == listed) return newest;
    listed = std::move(now);
  }
}

// The newest of `iterations`, oldest first, that verifies. `problems` names what is wrong with those passed over.
absl::StatusOr<int64_t> CheckpointStore::NewestValidOf(const std::vector<int64_t>& iterations,
                                                       std::string* problems) const {
  for (auto iteration = iterations.rbegin(); iteration != iterations.rend(); ++iteration) {
    const absl::Status status = Verify(*iteration).status();
    if (status.ok()) return *iteration;
    if (!IsDamage(status)) {
      problems->clear();
      return Annotate(status, absl::StrCat(StepDirectory(*iteration), " could not be read, which says nothing about ",
                                           "its bytes, so that nothing was changed; when this stays so, move it "
                                           "elsewhere to go on from an older one"));
    }
    absl::StrAppend(problems, problems->empty() ? "" : "; ", status.message());
  }
  return absl::DataLossError(absl::StrCat(options_.directory, ": no checkpoint is intact: ", *problems,
                                          "; remove the directory to start anew"));
}

absl::Status CheckpointStore::RemovedWhileRead() const {
  return absl::FailedPreconditionError(
      absl::StrCat(options_.directory,
                   ": all checkpoints were removed while they were read; does another run start "
                   "anew there? Once it has saved, this can be done again"));
}

absl::StatusOr<int64_t> CheckpointStore::NewestValid() {
  absl::StatusOr<int64_t> newest = 0;
  const auto find = [&] {
    std::string passed_over;
    newest = FindNewestValid(&passed_over);
    if (!passed_over.empty()) SSL_LOG(WARNING) << passed_over;
    return absl::IsNotFound(newest.status()) ? absl::OkStatus() : newest.status();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(find, "looking for a checkpoint", communicator_));
  at::Tensor iteration = at::full({1}, newest.ok() ? *newest : -1, at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(iteration, 0));
  if (iteration.item<int64_t>() < 0) return absl::NotFoundError(absl::StrCat(options_.directory, ": no checkpoint"));
  return iteration.item<int64_t>();
}

absl::StatusOr<int64_t> CheckpointStore::ReadNewest(absl::FunctionRef<absl::Status(int64_t)> read) {
  int64_t tried = -1;
  while (true) {
    const absl::StatusOr<int64_t> newest = NewestValid();
    if (tried >= 0 && absl::IsNotFound(newest.status())) return RemovedWhileRead();
    SSL_RETURN_IF_ERROR(newest.status());
    absl::Status status;
    const auto keep_status = [&] {
      status = read(*newest);
      return absl::OkStatus();  // who misses a file counts before who fails
    };
    SSL_RETURN_IF_ERROR(AgreeOnWork(keep_status, "reading a checkpoint", communicator_));
    if (absl::IsNotFound(status) && *newest == tried) status = absl::DataLossError(status.message());
    // A file may be gone for one rank that another one has read.
    SSL_ASSIGN_OR_RETURN(const bool gone, AnyRank(absl::IsNotFound(status), communicator_));
    if (!gone) {
      SSL_RETURN_IF_ERROR(AgreeOnStatus(status, "reading a checkpoint", communicator_));
      return newest;
    }
    tried = *newest;
  }
}

}  // namespace ssl
