// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/agree.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/host_name.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr char kCauseStop[] = "stop";  // of another rank

// One number tells what came of a rank's work and which rank it is, so that success costs one reduction: the maximum is
// a failure before a stop, and the lowest rank's of several.
int64_t MarkOf(const absl::Status& status, const Communicator& communicator) {
  if (status.ok()) return 0;
  const int64_t mark = communicator.size() - communicator.rank();  // 1 to size
  return absl::IsCancelled(status) ? mark : communicator.size() + mark;
}

struct Outcome {
  bool failed;  // or stopped
  int64_t rank;
};

Outcome OutcomeOf(int64_t mark, int64_t size) {
  const bool failed = mark > size;
  return {failed, (failed ? 2 * size : size) - mark};
}

}  // namespace

absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator) {
  at::Tensor mark = at::full({1}, MarkOf(status, communicator), at::kLong);
  const absl::Status reduced = communicator.AllReduce(mark, ReduceOp::kMax);
  if (!reduced.ok()) return status.ok() ? reduced : status;
  if (mark.item<int64_t>() == 0) return absl::OkStatus();
  const Outcome outcome = OutcomeOf(mark.item<int64_t>(), communicator.size());
  std::string said = absl::StrCat(" (on ", HostName("unknown"), "): ", status.message());
  const absl::Status told = BroadcastText(outcome.rank, &said, communicator);
  if (!status.ok() && (!outcome.failed || !absl::IsCancelled(status))) return status;
  if (!outcome.failed) {
    return WithDetail(absl::CancelledError(absl::StrCat(what, ": stopped on rank ", outcome.rank)), kDetailCause,
                      kCauseStop);
  }
  return absl::AbortedError(absl::StrCat(what, " failed on rank ", outcome.rank, told.ok() ? said : ""));
}

bool IsStopOfAnotherRank(const absl::Status& status) {
  return absl::IsCancelled(status) && DetailOf(status, kDetailCause) == kCauseStop;
}

absl::StatusOr<bool> AnyRank(bool here, Communicator& communicator) {
  at::Tensor any = at::full({1}, here ? 1 : 0, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(any, ReduceOp::kMax));
  return any.item<int64_t>() != 0;
}

absl::Status BroadcastText(int64_t root, std::string* text, Communicator& communicator) {
  at::Tensor size = at::full({1}, static_cast<int64_t>(text->size()), at::kLong);
  SSL_RETURN_IF_ERROR(communicator.Broadcast(size, root));
  at::Tensor bytes = at::empty({size.item<int64_t>()}, at::kByte);
  if (communicator.rank() == root && !text->empty()) {
    std::memcpy(bytes.mutable_data_ptr<uint8_t>(), text->data(), text->size());
  }
  SSL_RETURN_IF_ERROR(communicator.Broadcast(bytes, root));
  const auto* data = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
  text->assign(data, static_cast<size_t>(bytes.numel()));
  return absl::OkStatus();
}

}  // namespace ssl
