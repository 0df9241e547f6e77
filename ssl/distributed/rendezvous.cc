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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/network.h"
#include "ssl/distributed/process_identity.h"

namespace ssl {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;

// How long rank 0 stays to let the others read why it leaves: its process may be the store.
constexpr absl::Duration kFarewell = absl::Seconds(2);
constexpr absl::Duration kQuestionPeriod = absl::Milliseconds(100);
constexpr absl::Duration kLongestTimeout = absl::Hours(7 * 24);  // c10d adds it to times of its own
constexpr size_t kNamedRanks = 8;

// Keys, one of each for every rank.
std::string Taken(int64_t rank) { return absl::StrCat("taken/", rank); }    // how many processes came as this rank
std::string Member(int64_t rank) { return absl::StrCat("member/", rank); }  // what the process says of itself
std::string Failed(int64_t rank) { return absl::StrCat("failed/", rank); }  // the operation that it could not finish
std::string Heard(int64_t rank) { return absl::StrCat("heard/", rank); }    // set when it has read what rank 0 said
constexpr char kVerdict[] = "verdict";  // rank 0's, on whether the world is complete

std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  // c10d takes 0 for no limit.
  return std::max(absl::ToChronoMilliseconds(duration), std::chrono::milliseconds(1));
}

// False when the keys are not there in time, or the store is gone: then the next operation on it says so.
bool Await(c10d::Store& store, const std::vector<std::string>& keys, absl::Time deadline) {
  if (keys.empty()) return true;
  return GuardTorch("wait",
                    [&] {
                      store.wait(keys, Milliseconds(deadline - absl::Now()));
                      return absl::OkStatus();
                    })
      .ok();
}

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
  tcp.timeout = Milliseconds(deadline - absl::Now());
  if (tcp.isServer && options.listening_socket >= 0) tcp.masterListenFd = options.listening_socket;
  return c10::make_intrusive<c10d::TCPStore>(options.host, tcp);
}

Store OpenFile(const RendezvousOptions& options) {
  auto store = c10::make_intrusive<c10d::FileStore>(options.file, static_cast<int>(options.size));
  store->setTimeout(Milliseconds(options.connect_timeout));
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

absl::StatusOr<Store> Connect(const RendezvousOptions& options, absl::Time deadline) {
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

// What a process says of itself.
struct Introduction {
  int64_t size = 0;  // the number of ranks that it was started for
  ProcessIdentity process;
  std::string name;  // "rank 2 (process 17 on node3)"
};

void Introduce(c10d::Store& store, const RendezvousOptions& options) {
  store.set(Member(options.rank), absl::StrCat(options.size, " ", ProcessIdentity::OfThisProcess().ToText()));
}

Introduction IntroductionOf(c10d::Store& store, int64_t rank) {
  Introduction introduction;
  introduction.name = absl::StrCat("rank ", rank);
  if (!store.check({Member(rank)})) return introduction;
  const std::string text = store.get_to_str(Member(rank));
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  introduction.process = ProcessIdentity::FromText(parts.second);
  absl::StrAppend(&introduction.name, " (", introduction.process.Name(), ")");
  if (!absl::SimpleAtoi(parts.first, &introduction.size)) introduction.size = 0;
  return introduction;
}

// "rank 3, rank 5 and 2 others"
std::string Enumerate(const std::vector<std::string>& names) {
  if (names.size() <= kNamedRanks) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kNamedRanks, ", "), " and ",
                      names.size() - kNamedRanks, " others");
}

absl::Status MissingRanksError(c10d::Store& store, const RendezvousOptions& options) {
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    if (!store.check({Member(rank)})) missing.push_back(absl::StrCat("rank ", rank));
  }
  return WithPeerAsCause(absl::DeadlineExceededError(absl::StrCat(
      "rank ", options.rank, " of ", options.size, " waited ", absl::FormatDuration(options.connect_timeout), " at ",
      Place(options), ", ", missing.empty() ? "where rank 0 did not answer" : Enumerate(missing) + " did not come")));
}

absl::Status CompareSizes(const Introduction& one, const Introduction& other) {
  if (one.size == other.size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(one.name, " was started for a world of ", one.size, " ranks, ",
                                                 other.name, " for one of ", other.size,
                                                 ": start all with the same number of ranks"));
}

// Rank 0: whether all ranks have come, for the same world.
absl::Status JudgeWorld(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  const Introduction own = IntroductionOf(store, 0);
  for (int64_t rank = 1; rank < options.size; ++rank) {
    if (!Await(store, {Member(rank)}, deadline)) return MissingRanksError(store, options);
    SSL_RETURN_IF_ERROR(CompareSizes(own, IntroductionOf(store, rank)));
  }
  return absl::OkStatus();
}

void AwaitListeners(c10d::Store& store, std::string (*said)(int64_t), int64_t size) {
  std::vector<std::string> keys;
  for (int64_t rank = 1; rank < size; ++rank) {
    if (store.check({said(rank)})) keys.push_back(Heard(rank));
  }
  Await(store, keys, absl::Now() + kFarewell);
}

// One judge rather than a comparison of each with each: that would be 16 million questions to the store for 4,096
// ranks.
absl::Status GiveVerdict(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  absl::Status verdict = JudgeWorld(store, options, deadline);
  store.set(kVerdict, absl::StrCat(verdict.raw_code(), " ", verdict.message()));
  if (!verdict.ok()) AwaitListeners(store, Member, options.size);
  return verdict;
}

absl::Status HearVerdict(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  if (!Await(store, {Member(0)}, deadline)) return MissingRanksError(store, options);
  // Told at once what rank 0 may only see when it has waited for the ranks before this one.
  const absl::Status compared = CompareSizes(IntroductionOf(store, 0), IntroductionOf(store, options.rank));
  if (!compared.ok()) store.set(Heard(options.rank), std::string("1"));
  SSL_RETURN_IF_ERROR(compared);
  if (!Await(store, {kVerdict}, deadline)) return MissingRanksError(store, options);
  const std::pair<std::string, std::string> verdict =
      absl::StrSplit(store.get_to_str(kVerdict), absl::MaxSplits(' ', 1));
  store.set(Heard(options.rank), std::string("1"));
  int code = 0;
  if (absl::SimpleAtoi(verdict.first, &code) && code == 0) return absl::OkStatus();
  absl::Status status(static_cast<absl::StatusCode>(code), verdict.second);
  return status.code() == absl::StatusCode::kDeadlineExceeded ? WithPeerAsCause(status) : status;
}

absl::Status CheckIn(c10d::Store& store, const RendezvousOptions& options, absl::Time deadline) {
  if (store.add(Taken(options.rank), 1) != 1) {
    return absl::AlreadyExistsError(absl::StrCat(
        IntroductionOf(store, options.rank).name, " is at ", Place(options), " already: give each process a rank of ",
        "its own", options.file.empty() ? "" : "; or the file is left of another run: remove it, or take another"));
  }
  Introduce(store, options);
  return options.rank == 0 ? GiveVerdict(store, options, deadline) : HearVerdict(store, options, deadline);
}

// What a rank has once all have come.
struct Meeting {
  Store store;
  ProcessIdentity rank_zero;
};

absl::StatusOr<Meeting> Meet(const RendezvousOptions& options) {
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  Meeting meeting;
  SSL_ASSIGN_OR_RETURN(meeting.store, Connect(options, deadline));
  SSL_RETURN_IF_ERROR(GuardTorch(
      absl::StrCat("rank ", options.rank, " at ", Place(options), ", where ", Host(options), " is gone"), [&] {
        SSL_RETURN_IF_ERROR(CheckIn(*meeting.store, options, deadline));
        meeting.rank_zero = IntroductionOf(*meeting.store, 0).process;
        return absl::OkStatus();
      }));
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
  if (future.wait_for(Milliseconds(options.connect_timeout + kFarewell)) == std::future_status::ready) {
    return future.get();
  }
  return WithPeerAsCause(absl::DeadlineExceededError(
      absl::StrCat("rank ", options.rank, " was let in at ", Place(options), " and heard nothing from ", Host(options),
                   " within ", absl::FormatDuration(options.connect_timeout),
                   ": that process is stopped, or another program listens at that port")));
}

// What the ranks say of a failure, in the store.
struct Hearing {
  Store store;
  int64_t rank;
  int64_t size;
  std::string operation;
  absl::Duration patience;

  std::string Hold() const {
    store->set(Failed(rank), operation);
    AwaitAnswers(absl::Now() + patience);
    std::string text = Describe();
    if (rank == 0) {
      AwaitListeners(*store, Failed, size);
    } else {
      store->set(Heard(rank), std::string("1"));
    }
    return text;
  }

  // Asks rather than waits for all keys: of a process that has ended none will come.
  void AwaitAnswers(absl::Time deadline) const {
    for (int64_t other = 0; other < size; ++other) {
      const ProcessIdentity process = IntroductionOf(*store, other).process;
      while (!store->check({Failed(other)}) && !process.HasEnded() && absl::Now() < deadline)
        absl::SleepFor(kQuestionPeriod);
    }
  }

  std::string Describe() const {
    std::vector<std::string> ended;
    std::vector<std::string> silent;
    std::vector<std::string> elsewhere;
    for (int64_t other = 0; other < size; ++other) {
      const Introduction who = IntroductionOf(*store, other);
      if (!store->check({Failed(other)})) {
        (who.process.HasEnded() ? ended : silent).push_back(who.name);
      } else if (const std::string theirs = store->get_to_str(Failed(other)); theirs != operation) {
        elsewhere.push_back(absl::StrCat(who.name, " is in ", theirs));
      }
    }
    return Summary(ended, silent, elsewhere);
  }

  static std::string Summary(const std::vector<std::string>& ended, const std::vector<std::string>& silent,
                             const std::vector<std::string>& elsewhere) {
    std::vector<std::string> parts;
    if (!ended.empty()) parts.push_back(Enumerate(ended) + " ended");
    if (!silent.empty()) {
      parts.push_back(absl::StrCat("no answer from ", Enumerate(silent), ", which hangs, is elsewhere or ended"));
    }
    if (!elsewhere.empty()) parts.push_back(Enumerate(elsewhere));
    if (parts.empty()) parts.push_back("all ranks are in this operation and answer, their connections broke");
    return absl::StrJoin(parts, "; ");
  }
};

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
    Introduce(*store, options);
    return absl::OkStatus();
  }));
  return absl::WrapUnique(new Rendezvous(std::move(options), std::move(store), rank_zero_));
}

std::string Rendezvous::ExplainFailure(const std::string& operation, absl::Duration patience) const {
  // c10d's client waits without limit for a server that is stopped. So a thread of its own asks, and is left behind
  // when it does not come back: the process is about to end.
  std::promise<std::string> promise;
  std::future<std::string> future = promise.get_future();
  std::thread([promise = std::move(promise),
               hearing = Hearing{store_, options_.rank, options_.size, operation, patience}]() mutable {
    std::string text;
    const absl::Status status = GuardTorch("hearing", [&] {
      text = hearing.Hold();
      return absl::OkStatus();
    });
    promise.set_value(status.ok() ? text : "");
  }).detach();
  const absl::Duration limit = patience + (options_.rank == 0 ? 2 : 1) * kFarewell;
  if (future.wait_for(Milliseconds(limit)) == std::future_status::ready) {
    std::string text = future.get();
    if (!text.empty()) return text;
  }
  const std::string name = absl::StrCat("rank 0 (", rank_zero_.Name(), "), at which the ranks meet");
  return rank_zero_.HasEnded() ? absl::StrCat(name, ", ended") : absl::StrCat("no answer from ", name);
}

}  // namespace ssl
