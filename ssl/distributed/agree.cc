// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/agree.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/host_name.h"
#include "ssl/base/log.h"
#include "ssl/base/start_thread.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/network.h"

namespace ssl {
namespace {

constexpr char kCauseStop[] = "stop";                             // of another rank
constexpr char kDetailSaidBy[] = "ssl/said_by";                   // a rank of this host
constexpr char kDetailAgreed[] = "ssl/agreed";                    // by all ranks; "1"
constexpr int64_t kAtWork = std::numeric_limits<int64_t>::max();  // a mark before all others
// Of ranks at work. A fraction of the shortest time that an operation waits, which is a second.
constexpr absl::Duration kMeetingPeriod = absl::Milliseconds(250);

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

absl::StatusOr<int64_t> LargestMark(int64_t own, Communicator& communicator) {
  at::Tensor mark = at::full({1}, own, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(mark, ReduceOp::kMax));
  return mark.item<int64_t>();
}

// A rank that is done waits here for the others, which come again and again: none waits for the whole work.
absl::StatusOr<int64_t> MeetUntilDone(const std::shared_future<int64_t>& mark, Communicator& communicator) {
  while (true) {
    const bool is_done = mark.wait_for(absl::ToChronoMilliseconds(kMeetingPeriod)) == std::future_status::ready;
    SSL_ASSIGN_OR_RETURN(const int64_t largest, LargestMark(is_done ? mark.get() : kAtWork, communicator));
    if (largest != kAtWork) return largest;
  }
}

// Of `status`, this rank's, and what came of the work, not OK on all ranks.
absl::Status Tell(const absl::Status& status, Outcome outcome, absl::string_view what, Communicator& communicator) {
  const std::string here = absl::StrCat(" (on ", HostName("unknown"), "): ");
  const std::string own = absl::StrCat(here, status.message());
  std::string said = own;
  const absl::Status told = BroadcastText(outcome.rank, &said, communicator);
  if (!status.ok() && (!outcome.failed || !absl::IsCancelled(status))) {
    const bool is_said = told.ok() && said == own && outcome.rank != communicator.rank();
    return is_said ? WithDetail(status, kDetailSaidBy, absl::StrCat(outcome.rank)) : status;
  }
  if (!outcome.failed) {
    return WithDetail(absl::CancelledError(absl::StrCat(what, ": stopped on rank ", outcome.rank)), kDetailCause,
                      kCauseStop);
  }
  const absl::Status heard =
      absl::AbortedError(absl::StrCat(what, " failed on rank ", outcome.rank, told.ok() ? said : ""));
  return told.ok() && absl::StartsWith(said, here) ? WithDetail(heard, kDetailSaidBy, absl::StrCat(outcome.rank))
                                                   : heard;
}

// Of `status`, this rank's, and the largest mark of all ranks, what AgreeOnStatus says.
absl::Status Conclude(const absl::Status& status, const absl::StatusOr<int64_t>& largest, absl::string_view what,
                      Communicator& communicator) {
  if (!largest.ok()) return status.ok() ? largest.status() : status;
  if (*largest == 0) return absl::OkStatus();
  return WithDetail(Tell(status, OutcomeOf(*largest, communicator.size()), what, communicator), kDetailAgreed, "1");
}

// Operations run on it.
absl::Status StartMeeting(const std::function<void()>& meet, std::thread* thread) {
  const SigpipeBlock for_the_thread;
  return StartThread("meeting the other ranks", meet, thread);
}

}  // namespace

absl::Status AgreeOnStatus(const absl::Status& status, absl::string_view what, Communicator& communicator) {
  return Conclude(status, LargestMark(MarkOf(status, communicator), communicator), what, communicator);
}

absl::Status AgreeOnWork(absl::FunctionRef<absl::Status()> work, absl::string_view what, Communicator& communicator) {
  if (communicator.size() == 1) return GuardTorch(what, work);
  absl::Status status;
  absl::StatusOr<int64_t> largest = absl::InternalError("no rank was met");
  const auto meet_and_work = [&] {
    std::promise<int64_t> mark;
    const auto meet = [&largest, &communicator, of_work = mark.get_future().share()] {
      largest = MeetUntilDone(of_work, communicator);
    };
    std::thread meeting;
    const absl::Status started = StartMeeting(meet, &meeting);
    if (!started.ok()) {
      // The work is worth more than the others' patience: it may be what a whole run has computed.
      SSL_LOG(WARNING) << what << ": " << started.message()
                       << "; the other ranks hear nothing of this one before that is done";
    }
    status = GuardTorch(what, work);
    mark.set_value(MarkOf(status, communicator));
    if (!meeting.joinable()) return meet();
    meeting.join();
  };
  communicator.LetOthersGoOn(meet_and_work);
  return Conclude(status, largest, what, communicator);
}

absl::Status OnRankZero(absl::FunctionRef<absl::Status()> work, absl::string_view what, Communicator& communicator) {
  return AgreeOnWork([&] { return communicator.rank() == 0 ? work() : absl::OkStatus(); }, what, communicator);
}

// Also of another rank's failure that a rank of this host says.
bool IsSaidOnThisHost(const absl::Status& status) { return !DetailOf(status, kDetailSaidBy).empty(); }

bool IsKnownToAllRanks(const absl::Status& status) { return !DetailOf(status, kDetailAgreed).empty(); }

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
