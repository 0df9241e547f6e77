// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/rendezvous.h"

#include <sys/stat.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/network.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);
constexpr absl::Duration kLongestTimeout = absl::Hours(7 * 24);  // c10d adds it to times of its own
// What a store that is there needs to answer, on a machine that does other work.
constexpr absl::Duration kAnswerTime = absl::Seconds(2);
// How often a rank that waits in a store that outlives starts looks whether rank 0 has begun another one.
constexpr absl::Duration kLookPeriod = absl::Seconds(1);

std::string Taken(int64_t rank) { return absl::StrCat("taken/", rank); }         // how many processes came as this rank
std::string HeardVerdict(int64_t rank) { return absl::StrCat("heard/", rank); }  // set when it has read rank 0's
constexpr char kVerdict[] = "verdict";        // rank 0's, on whether the world is complete
constexpr char kGeneration[] = "generation";  // in a store that outlives starts: how many rank 0 has begun there

std::string Place(const RendezvousOptions& options) {
  return options.file.empty() ? absl::StrCat(options.host, ":", options.port) : options.file;
}

absl::Status WithPeerAsCause(absl::Status status) { return WithDetail(std::move(status), kDetailCause, kCausePeer); }

absl::Status CheckFile(const RendezvousOptions& options) {
  // c10d would wait for the directory for minutes.
  const std::string directory = options.file.substr(0, options.file.rfind('/') + 1);
  struct stat found;
  if (directory.empty() || (stat(directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode))) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("rendezvous file ", options.file, ": there is no directory ", directory));
}

absl::Status CheckOptions(const RendezvousOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", options.rank, " of ", options.size,
                                                   " ranks: expected a rank from 0 to the number of ranks less 1"));
  }
  if (options.connect_timeout <= absl::ZeroDuration() || options.connect_timeout > kLongestTimeout) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous: connect_timeout is ",
                                                   absl::FormatDuration(options.connect_timeout),
                                                   ", expected more than 0 and at most a week"));
  }
  if (options.host.empty() == options.file.empty()) {
    return absl::InvalidArgumentError("rendezvous: expected either a host with a port or a file");
  }
  if (!options.file.empty()) return CheckFile(options);
  if (options.port < 1 || options.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("rendezvous at ", Place(options), ": expected a port from 1 to 65535"));
  }
  return absl::OkStatus();
}

bool Serves(const RendezvousOptions& options) {
  return options.file.empty() && options.rank == 0 && !options.store_is_served;
}

// Who holds the store, for messages.
std::string Host(const RendezvousOptions& options) {
  return options.store_is_served ? "the launcher's store" : "rank 0";
}

Store ConnectToServer(const RendezvousOptions& options, absl::Time deadline) {
  c10d::TCPStoreOptions tcp;
  tcp.port = static_cast<uint16_t>(options.port);
  tcp.isServer = Serves(options);
  tcp.timeout = StoreTimeout(deadline - absl::Now());
  if (tcp.isServer && options.listening_socket >= 0) tcp.masterListenFd = options.listening_socket;
  return c10::make_intrusive<c10d::TCPStore>(options.host, tcp);
}

Store OpenFile(const RendezvousOptions& options) {
  auto store = c10::make_intrusive<c10d::FileStore>(options.file, static_cast<int>(options.size));
  store->setTimeout(StoreTimeout(options.connect_timeout));
  return store;
}

// c10d's words, with what they mean here and the way out.
absl::Status ConnectError(const RendezvousOptions& options, const absl::Status& error) {
  const std::string why = absl::StrCat(" (", error.message(), ")");
  if (!options.file.empty()) {
    return absl::Status(error.code(), absl::StrCat("rendezvous file ", options.file, " cannot be used", why));
  }
  if (absl::StrContains(error.message(), "EADDRINUSE")) {
    return absl::AlreadyExistsError(
        absl::StrCat("port ", options.port, ", at which rank 0 is to listen, is taken by another process of this ",
                     "machine: choose another port for all ranks, or end what is left of an earlier run", why));
  }
  return WithPeerAsCause(absl::UnavailableError(
      absl::StrCat("rank ", options.rank, " did not reach ", Host(options), " at ", Place(options), " within ",
                   absl::FormatDuration(options.connect_timeout), why, ": ", Host(options),
                   " has to run, its machine to have that name or address, and no firewall to stand between")));
}

// What the ranks that are started together have in a store.
struct Start {
  Store store;  // with nothing of other starts
  Store base;   // the same as `store`, but where the store outlives starts: there it holds how many there have been
  int64_t generation = 0;  // the number of this one, from 1; 0 in a store of a single start
};

absl::Status WaitedError(const RendezvousOptions& options, absl::string_view for_what) {
  return WithPeerAsCause(absl::DeadlineExceededError(
      absl::StrCat("rank ", options.rank, " of ", options.size, " waited ",
                   absl::FormatDuration(options.connect_timeout), " at ", Place(options), ", ", for_what)));
}

absl::StatusOr<Store> ConnectToStore(const RendezvousOptions& options, absl::Time deadline) {
  Store store;
  if (options.file.empty() && !Serves(options)) {
    // c10d's own waiting sleeps longer and longer, and does not say what it has met.
    const absl::Status listening = AwaitListener(options.host, options.port, deadline - absl::Now());
    if (!listening.ok()) return ConnectError(options, listening);
  }
  const SigpipeBlock for_threads_of_the_store;
  const absl::Status status = GuardTorch("c10d", [&] {
    store = options.file.empty() ? ConnectToServer(options, deadline) : OpenFile(options);
    if (!options.prefix.empty()) store = c10::make_intrusive<c10d::PrefixStore>(options.prefix, store);
    return absl::OkStatus();
  });
  if (!status.ok()) return ConnectError(options, status);
  return store;
}

// Rank 0 draws the number of the start, and the others learn it. Agents of torchrun count restarts for themselves, and
// those of two hosts need not agree.
absl::StatusOr<Start> Connect(const RendezvousOptions& options, absl::Time deadline) {
  SSL_ASSIGN_OR_RETURN(const Store base, ConnectToStore(options, deadline));
  if (!options.store_is_served) return Start{base, base};
  if (options.rank != 0 && !AwaitKeys({kGeneration}, deadline, *base)) {
    return WaitedError(options, "rank 0 did not come");
  }
  const int64_t generation = base->add(kGeneration, options.rank == 0 ? 1 : 0);
  return Start{c10::make_intrusive<c10d::PrefixStore>(absl::StrCat("start/", generation), base), base, generation};
}

// Whether rank 0 has begun another start in the meantime.
bool IsOutdated(const Start& start) {
  return start.generation > 0 && start.base->add(kGeneration, 0) != start.generation;
}

// False when the key is not there in time, the store is gone, or the start is outdated.
bool AwaitKey(const std::string& key, const Start& start, absl::Time deadline) {
  const absl::Duration longest = start.generation > 0 ? kLookPeriod : absl::InfiniteDuration();
  while (!AwaitKeys({key}, std::min(deadline, absl::Now() + longest), *start.store)) {
    if (absl::Now() >= deadline || IsOutdated(start)) return false;
  }
  return true;
}

absl::Status MissingRanksError(c10d::Store& store, const RendezvousOptions& options) {
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    if (!store.check({MemberKey(rank)})) missing.push_back(absl::StrCat("rank ", rank));
  }
  return WaitedError(options, missing.empty() ? "where rank 0 did not answer" : Enumerate(missing) + " did not come");
}

absl::Status CompareSizes(const Introduction& one, const Introduction& other) {
  if (one.size == other.size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(one.name, " was started for a world of ", one.size, " ranks, ",
                                                 other.name, " for one of ", other.size,
                                                 ": start all with the same number of ranks"));
}

// Rank 0: whether all ranks have come, for the same world.
absl::Status JudgeWorld(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  const Introduction own = IntroductionOf(0, store);
  for (int64_t rank = 1; rank < options.size; ++rank) {
    if (!AwaitKeys({MemberKey(rank)}, deadline, store)) return MissingRanksError(store, options);
    SSL_RETURN_IF_ERROR(CompareSizes(own, IntroductionOf(rank, store)));
  }
  return absl::OkStatus();
}

// One judge rather than a comparison of each with each: that would be 16 million questions to the store for 4,096
// ranks.
absl::Status GiveVerdict(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  absl::Status verdict = JudgeWorld(store, options, deadline);
  store.set(kVerdict, absl::StrCat(verdict.raw_code(), " ", verdict.message()));
  if (!verdict.ok()) AwaitListeners(MemberKey, HeardVerdict, options.size, store);
  return verdict;
}

// Whether this process is a member of the start; false when there is another one to come to.
absl::StatusOr<bool> HearVerdict(const Start& start, const RendezvousOptions& options, absl::Time deadline) {
  c10d::Store& store = *start.store;
  const auto missing = [&]() -> absl::StatusOr<bool> {
    if (IsOutdated(start)) return false;
    return MissingRanksError(store, options);
  };
  if (!AwaitKey(MemberKey(0), start, deadline)) return missing();
  // Told at once what rank 0 may only see when it has waited for the ranks before this one.
  const absl::Status compared = CompareSizes(IntroductionOf(0, store), IntroductionOf(options.rank, store));
  if (!compared.ok()) store.set(HeardVerdict(options.rank), std::string("1"));
  SSL_RETURN_IF_ERROR(compared);
  if (!AwaitKey(kVerdict, start, deadline)) return missing();
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
    SSL_LOG(WARNING) << other.name << " was at " << Place(options) << " before this process; waiting, for at most "
                     << absl::FormatDuration(options.connect_timeout) << ", until the ranks come anew";
    if (AwaitItsEnd(start, deadline)) return false;
  }
  return absl::AlreadyExistsError(
      absl::StrCat(other.name, " is at ", Place(options), " already: give each process a rank of its own",
                   options.file.empty() ? "" : "; or the file is left of another run: remove it, or take another"));
}

// As HearVerdict.
absl::StatusOr<bool> CheckIn(const Start& start, const RendezvousOptions& options, absl::Time deadline) {
  if (start.store->add(Taken(options.rank), 1) != 1) return ComeAfterAnother(start, options, deadline);
  Introduce(options.rank, options.size, *start.store);
  if (options.rank != 0) return HearVerdict(start, options, deadline);
  SSL_RETURN_IF_ERROR(GiveVerdict(*start.store, options, deadline));
  return true;
}

// What a rank has once all have come.
struct Meeting {
  Store store;
  ProcessIdentity rank_zero;
};

absl::StatusOr<Meeting> Meet(const RendezvousOptions& options) {
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  const std::string at_a_store_that_is_gone =
      absl::StrCat("rank ", options.rank, " at ", Place(options), ", where ", Host(options), " is gone");
  Meeting meeting;
  for (bool has_met = false; !has_met;) {
    SSL_RETURN_IF_ERROR(GuardTorch(at_a_store_that_is_gone, [&]() -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const Start start, Connect(options, deadline));
      SSL_ASSIGN_OR_RETURN(has_met, CheckIn(start, options, deadline));
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
      absl::StrCat("rank ", options.rank, " was let in at ", Place(options), " and heard nothing from ", Host(options),
                   " within ", absl::FormatDuration(options.connect_timeout),
                   ": that process is stopped, or another program listens at that port")));
}

}  // namespace

Rendezvous::Rendezvous(RendezvousOptions options, c10::intrusive_ptr<c10d::Store> store, ProcessIdentity rank_zero)
    : options_(std::move(options)), store_(std::move(store)), rank_zero_(std::move(rank_zero)) {}

Rendezvous::~Rendezvous() = default;

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Open(RendezvousOptions options) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(Meeting meeting, MeetInTime(options));
  return absl::WrapUnique(new Rendezvous(std::move(options), std::move(meeting.store), std::move(meeting.rank_zero)));
}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Child(absl::string_view name, int64_t rank,
                                                              int64_t size) const {
  RendezvousOptions options = options_;
  options.rank = rank;
  options.size = size;
  Store store;
  SSL_RETURN_IF_ERROR(GuardTorch(absl::StrCat("rank 0 (", rank_zero_.Name(), ") at ", Place(options_)), [&] {
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
  std::thread([promise = std::move(promise), store = store_,
               hearing = Hearing{options_.rank, options_.size, operation, patience}]() mutable {
    PeerReport report;
    const absl::Status status = GuardTorch("hearing", [&] {
      report = HoldHearing(hearing, *store);
      return absl::OkStatus();
    });
    promise.set_value(status.ok() ? absl::StatusOr<PeerReport>(report) : status);
  }).detach();
  const absl::Duration limit = patience + kAnswerTime + (options_.rank == 0 ? kFarewell : absl::ZeroDuration());
  if (future.wait_for(StoreTimeout(limit)) == std::future_status::ready) {
    if (absl::StatusOr<PeerReport> report = future.get(); report.ok()) return *std::move(report);
  }
  if (rank_zero_.HasEnded()) return {absl::StrCat(name, ", ended or cannot be reached"), ""};
  return {absl::StrCat("no answer from ", name), rank_zero_.Name()};
}

}  // namespace ssl
