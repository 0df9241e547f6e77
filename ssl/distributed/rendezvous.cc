// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/rendezvous.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/distributed/store_connection.h"
#include "ssl/distributed/store_members.h"
#include "ssl/distributed/waiting_log.h"

namespace ssl {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);
// What a store that is there needs to answer, on a machine that does other work.
constexpr absl::Duration kAnswerTime = absl::Seconds(2);
// How often a rank that waits in a store that outlives starts looks whether rank 0 has begun another one.
constexpr absl::Duration kLookPeriod = absl::Seconds(1);

std::string Taken(int64_t rank) { return absl::StrCat("taken/", rank); }         // how many processes came as this rank
std::string HeardVerdict(int64_t rank) { return absl::StrCat("heard/", rank); }  // set when it has read rank 0's
constexpr char kVerdict[] = "verdict";        // rank 0's, on whether the world is complete
constexpr char kGeneration[] = "generation";  // in a store that outlives starts: how many rank 0 has begun there

// What the ranks that are started together have in a store.
struct Start {
  Store store;  // with nothing of other starts
  Store base;   // the same as `store`, but where the store outlives starts: there it holds how many there have been
  int64_t generation = 0;  // the number of this one, from 1; 0 in a store of a single start
};

// culprit: a rank that the others waited for.
absl::Status WaitedError(const RendezvousOptions& options, absl::string_view what, absl::string_view culprit) {
  return WithPeerAsCause(absl::DeadlineExceededError(
      absl::StrCat("waited ", absl::FormatDuration(options.connect_timeout), " at ", MeetingPlaceOf(options), ", ",
                   what, ": see the output of ", culprit, ", or raise config.DISTRIBUTED.CONNECT_SECONDS")));
}

// Whether rank 0 has begun another start in the meantime.
bool IsOutdated(const Start& start) {
  return start.generation > 0 && start.base->add(kGeneration, 0) != start.generation;
}

// False when the key is not there in time, or the start is outdated; throws when the store is gone.
bool AwaitKey(const std::string& key, const Start& start, absl::Time deadline, WaitingLog* waiting,
              absl::FunctionRef<std::string()> whom) {
  while (true) {
    absl::Time until = std::min(deadline, waiting->next());
    if (start.generation > 0) until = std::min(until, absl::Now() + kLookPeriod);
    if (AwaitKeys({key}, until, *start.store)) return true;
    if (absl::Now() >= deadline || IsOutdated(start)) return false;
    if (start.store->check({key})) return true;
    waiting->SayIfDue(whom);
  }
}

// Rank 0 draws the number of the start, and the others learn it. Agents of torchrun count restarts for themselves, and
// those of two hosts need not agree.
absl::StatusOr<Start> Connect(const RendezvousOptions& options, absl::Time deadline, WaitingLog* waiting) {
  SSL_ASSIGN_OR_RETURN(const Store base, ConnectToStore(options, deadline, waiting));
  if (!options.store_is_served) return Start{base, base};
  const Start any{base, base};
  if (options.rank != 0 && !AwaitKey(kGeneration, any, deadline, waiting, [] { return std::string("rank 0"); })) {
    return WaitedError(options, "rank 0 did not come", "rank 0");
  }
  const int64_t generation = base->add(kGeneration, options.rank == 0 ? 1 : 0);
  return Start{c10::make_intrusive<c10d::PrefixStore>(absl::StrCat("start/", generation), base), base, generation};
}

std::vector<std::string> MissingRanks(c10d::Store& store, int64_t size) {
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < size; ++rank) {
    if (!store.check({MemberKey(rank)})) missing.push_back(absl::StrCat("rank ", rank));
  }
  return missing;
}

absl::Status MissingRanksError(c10d::Store& store, const RendezvousOptions& options) {
  const std::vector<std::string> missing = MissingRanks(store, options.size);
  if (missing.empty()) return WaitedError(options, "where rank 0 did not answer", "rank 0");
  return WaitedError(options, absl::StrCat(Enumerate(missing), " did not come"), missing.front());
}

absl::Status CompareSizes(const Introduction& one, const Introduction& other) {
  if (one.size == other.size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(one.name, " was started for a world of ", one.size, " ranks, ",
                                                 other.name, " for one of ", other.size,
                                                 ": start all with the same number of ranks"));
}

// Rank 0: whether all ranks have come, for the same world.
absl::Status JudgeWorld(const Start& start, const RendezvousOptions& options, absl::Time deadline,
                        WaitingLog* waiting) {
  c10d::Store& store = *start.store;
  const Start alone{start.store, start.base};  // another one that is begun there does not end it
  const auto missing = [&] { return Enumerate(MissingRanks(store, options.size)); };
  const Introduction own = IntroductionOf(0, store);
  for (int64_t rank = 1; rank < options.size; ++rank) {
    if (!AwaitKey(MemberKey(rank), alone, deadline, waiting, missing)) return MissingRanksError(store, options);
    SSL_RETURN_IF_ERROR(CompareSizes(own, IntroductionOf(rank, store)));
  }
  return absl::OkStatus();
}

// One judge rather than a comparison of each with each: that would be 16 million questions to the store for 4,096
// ranks.
absl::Status GiveVerdict(const Start& start, const RendezvousOptions& options, absl::Time deadline,
                         WaitingLog* waiting) {
  c10d::Store& store = *start.store;
  absl::Status verdict = JudgeWorld(start, options, deadline, waiting);
  store.set(kVerdict, absl::StrCat(verdict.raw_code(), " ", verdict.message()));
  if (!verdict.ok()) AwaitListeners(MemberKey, HeardVerdict, options.size, store);
  return verdict;
}

// To ask the store for each of them would be 16 million questions in a world of 4,096.
constexpr char kOthers[] = "ranks that rank 0 names";

// Whether this process is a member of the start; false when there is another one to come to.
absl::StatusOr<bool> HearVerdict(const Start& start, const RendezvousOptions& options, absl::Time deadline,
                                 WaitingLog* waiting) {
  c10d::Store& store = *start.store;
  const auto missing = [&]() -> absl::StatusOr<bool> {
    if (IsOutdated(start)) return false;
    return MissingRanksError(store, options);
  };
  if (!AwaitKey(MemberKey(0), start, deadline, waiting, [] { return std::string("rank 0"); })) return missing();
  // Told at once what rank 0 may only see when it has waited for the ranks before this one.
  const absl::Status compared = CompareSizes(IntroductionOf(0, store), IntroductionOf(options.rank, store));
  if (!compared.ok()) store.set(HeardVerdict(options.rank), std::string("1"));
  SSL_RETURN_IF_ERROR(compared);
  if (!AwaitKey(kVerdict, start, deadline, waiting, [] { return std::string(kOthers); })) return missing();
  const std::pair<std::string, std::string> verdict =
      absl::StrSplit(store.get_to_str(kVerdict), absl::MaxSplits(' ', 1));
  store.set(HeardVerdict(options.rank), std::string("1"));
  int code = 0;
  if (absl::SimpleAtoi(verdict.first, &code) && code == 0) return true;
  absl::Status status(static_cast<absl::StatusCode>(code), verdict.second);
  return status.code() == absl::StatusCode::kDeadlineExceeded ? WithPeerAsCause(status) : status;
}

// True once the start's store is gone, or rank 0 has begun another start in it; false at the deadline.
bool AwaitItsEnd(const Start& start, absl::Time deadline) {
  const auto goes_on = [&start] {
    bool is_outdated = false;
    const absl::Status asked = GuardTorch("asking", [&] {
      start.store->check({MemberKey(0)});
      is_outdated = IsOutdated(start);
      return absl::OkStatus();
    });
    return asked.ok() && !is_outdated;
  };
  while (goes_on()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kQuestionPeriod);
  }
  return true;
}

// Another process came as this rank. A supervisor that starts a rank again within a second is faster than the end of
// the ranks that have lost it: their start is no longer one to join. Where it is known that the other process runs, two
// were started as one rank.
absl::StatusOr<bool> ComeAfterAnother(const Start& start, const RendezvousOptions& options, absl::Time deadline) {
  Introduction other;
  const absl::Status asked = GuardTorch("asking", [&] {
    other = IntroductionOf(options.rank, *start.store);
    return absl::OkStatus();
  });
  if (!asked.ok()) return false;  // it has just gone
  const bool may_be_over = options.rank != 0 && options.file.empty() && !other.process.IsRunning();
  if (may_be_over) {
    SSL_LOG(WARNING) << other.name << " was at " << MeetingPlaceOf(options)
                     << " before this process; waiting, for at most " << absl::FormatDuration(options.connect_timeout)
                     << ", until the ranks come anew";
    if (AwaitItsEnd(start, deadline)) return false;
  }
  return absl::AlreadyExistsError(
      absl::StrCat(other.name, " is at ", MeetingPlaceOf(options), " already: give each process a rank of its own",
                   options.file.empty() ? "" : "; or the file is left of another run: remove it, or take another"));
}

// As HearVerdict.
absl::StatusOr<bool> CheckIn(const Start& start, const RendezvousOptions& options, absl::Time deadline,
                             WaitingLog* waiting) {
  if (start.store->add(Taken(options.rank), 1) != 1) return ComeAfterAnother(start, options, deadline);
  Introduce(options.rank, options.size, *start.store);
  if (options.rank != 0) return HearVerdict(start, options, deadline, waiting);
  SSL_RETURN_IF_ERROR(GiveVerdict(start, options, deadline, waiting));
  return true;
}

// What a rank has once all have come.
struct Meeting {
  Store store;
  ProcessIdentity rank_zero;
};

absl::StatusOr<Meeting> Meet(const RendezvousOptions& options) {
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  const std::string at_a_store_that_is_gone = absl::StrCat("rank ", options.rank, " at ", MeetingPlaceOf(options),
                                                           ", where ", StoreHolder(options), " is gone");
  WaitingLog waiting(absl::StrCat("rank ", options.rank, " of ", options.size, " waits at ", MeetingPlaceOf(options)),
                     options.connect_timeout);
  Meeting meeting;
  for (bool has_met = false; !has_met;) {
    SSL_RETURN_IF_ERROR(GuardTorch(at_a_store_that_is_gone, [&]() -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const Start start, Connect(options, deadline, &waiting));
      SSL_ASSIGN_OR_RETURN(has_met, CheckIn(start, options, deadline, &waiting));
      if (has_met) meeting = {start.store, IntroductionOf(0, *start.store).process};
      return absl::OkStatus();
    }));
  }
  return meeting;
}

// c10d's client waits without limit for a server that accepts its connection and does not answer: a process that is
// stopped does that, its system accepts for it. So a thread of its own asks, and is left behind when it does not come
// back: the process is about to end.
absl::StatusOr<Meeting> MeetInTime(const RendezvousOptions& options) {
  if (Serves(options) || !options.file.empty()) return Meet(options);
  std::promise<absl::StatusOr<Meeting>> promise;
  std::future<absl::StatusOr<Meeting>> future = promise.get_future();
  std::thread([promise = std::move(promise), options]() mutable { promise.set_value(Meet(options)); }).detach();
  if (future.wait_for(StoreTimeout(options.connect_timeout + kAnswerTime)) == std::future_status::ready) {
    return future.get();
  }
  return WithPeerAsCause(absl::DeadlineExceededError(
      absl::StrCat("rank ", options.rank, " was let in at ", MeetingPlaceOf(options), " and heard nothing from ",
                   StoreHolder(options), " within ", absl::FormatDuration(options.connect_timeout),
                   ": that process is stopped, or another program listens at that port")));
}

}  // namespace

Rendezvous::Rendezvous(RendezvousOptions options, c10::intrusive_ptr<c10d::Store> store, ProcessIdentity rank_zero)
    : options_(std::move(options)), store_(std::move(store)), rank_zero_(std::move(rank_zero)) {}

Rendezvous::~Rendezvous() = default;

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Open(RendezvousOptions options) {
  SSL_RETURN_IF_ERROR(CheckRendezvous(options));
  SSL_ASSIGN_OR_RETURN(Meeting meeting, MeetInTime(options));
  return absl::WrapUnique(new Rendezvous(std::move(options), std::move(meeting.store), std::move(meeting.rank_zero)));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Child(absl::string_view name, int64_t rank,
                                                              int64_t size) const {
  RendezvousOptions options = options_;
  options.rank = rank;
  options.size = size;
  Store store;
  SSL_RETURN_IF_ERROR(GuardTorch(absl::StrCat("rank 0 (", rank_zero_.Name(), ") at ", MeetingPlaceOf(options_)), [&] {
    store = c10::make_intrusive<c10d::PrefixStore>(std::string(name), store_->clone());
    Introduce(rank, size, *store);
    return absl::OkStatus();
  }));
  return absl::WrapUnique(new Rendezvous(std::move(options), std::move(store), rank_zero_));
}

PeerReport Rendezvous::ExplainFailure(const std::string& operation, absl::Duration patience) const {
  const std::string name = absl::StrCat("rank 0 (", rank_zero_.Name(), "), at which the ranks meet");
  // The store is its own, unless a launcher or a file has it; a store that is stopped cannot be asked.
  if (options_.file.empty() && !options_.store_is_served && rank_zero_.IsStopped()) {
    return {absl::StrCat("no answer from ", name, ", stopped (SIGSTOP, or a debugger)"), rank_zero_.Name()};
  }
  // c10d's client waits without limit for a server that is stopped. So a thread of its own asks, and is left behind
  // when it does not come back: the process is about to end.
  std::promise<absl::StatusOr<PeerReport>> promise;
  std::future<absl::StatusOr<PeerReport>> future = promise.get_future();
  const Hearing hearing{options_.rank, options_.size, operation, patience};
  std::thread([promise = std::move(promise), store = store_, hearing]() mutable {
    PeerReport report;
    const absl::Status status = GuardTorch("hearing", [&] {
      report = HoldHearing(hearing, *store);
      return absl::OkStatus();
    });
    promise.set_value(status.ok() ? absl::StatusOr<PeerReport>(report) : status);
  }).detach();
  const absl::Duration limit = LongestTime(hearing) + (options_.rank == 0 ? kFarewell : absl::ZeroDuration());
  if (future.wait_for(StoreTimeout(limit)) == std::future_status::ready) {
    if (absl::StatusOr<PeerReport> report = future.get(); report.ok()) return *std::move(report);
  }
  if (rank_zero_.HasEnded()) return {absl::StrCat(name, ", ended or cannot be reached"), ""};
  return {absl::StrCat("no answer from ", name), rank_zero_.Name()};
}

}  // namespace ssl
