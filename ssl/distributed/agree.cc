// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/agree.h"

#include <ATen/ops/full.h>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {

absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator) {
  at::Tensor failed = at::full({1}, status.ok() ? 0 : 1, at::kLong);
  const absl::Status reduced = communicator.AllReduce(failed, ReduceOp::kMax);
  if (!status.ok()) return status;
  SSL_RETURN_IF_ERROR(reduced);
  if (failed.item<int64_t>() == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(what, " failed on another rank"));
}

}  // namespace ssl
