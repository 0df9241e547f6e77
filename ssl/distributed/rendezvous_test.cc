// SPDX-License-Identifier: Apache-2.0
//
// Meeting at a store that somebody else serves, and at one that does not answer. Ranks that meet at rank 0's store are
// gloo_communicator_test's.
#include "ssl/distributed/rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RendezvousOptions OptionsAt(int port, int64_t rank, absl::Duration connect_timeout) {
  RendezvousOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.rank = rank;
  options.size = 2;
  options.connect_timeout = connect_timeout;
  return options;
}

// As torchrun's agent does before it starts ranks.
c10::intrusive_ptr<c10d::TCPStore> ServeStore() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

// Opens both ranks, one of them in a thread.
std::vector<absl::Status> OpenBoth(int port, const std::string& prefix) {
  std::vector<absl::Status> statuses(2);
  const auto open = [&](int64_t rank) {
    RendezvousOptions options = OptionsAt(port, rank, absl::Seconds(60));
    options.store_is_served = true;
    options.prefix = prefix;
    statuses[rank] = Rendezvous::Open(options).status();
  };
  std::thread other(open, 1);
  open(0);
  other.join();
  return statuses;
}

// What an earlier start of two ranks has left in a store: processes that are no more.
void LeaveEarlierStart(const std::string& prefix, c10d::Store& store) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  ProcessIdentity ended = ProcessIdentity::OfThisProcess();
  ended.pid = child;
  for (const char* rank : {"0", "1"}) {
    store.add(absl::StrCat(prefix, "taken/", rank), 1);
    store.set(absl::StrCat(prefix, "member/", rank), absl::StrCat("2 ", ended.ToText()));
  }
  store.set(absl::StrCat(prefix, "verdict"), "0 ");
}

TEST(RendezvousTest, StoreThatIsServed_HasNoRankThatBindsItsPort) {
  const auto store = ServeStore();
  for (const absl::Status& status : OpenBoth(store->getPort(), "ssl")) EXPECT_OK(status);
}

// The ranks are started again, the store goes on.
TEST(RendezvousTest, StoreThatIsServed_BeginsEachStartAnew) {
  const auto store = ServeStore();
  store->add("ssl/generation", 1);
  LeaveEarlierStart("ssl/start/1/", *store);
  for (const absl::Status& status : OpenBoth(store->getPort(), "ssl")) EXPECT_OK(status);
}

// Rank 1 is there before rank 0 has begun the start, and reads of the one before: in that one nobody was rank 1 yet.
TEST(RendezvousTest, StoreThatIsServed_LetsNoRankIntoAStartThatIsOver) {
  const auto store = ServeStore();
  store->add("ssl/generation", 1);
  c10d::Store& keys = *store;
  keys.set("ssl/start/1/member/0", absl::StrCat("2 ", ProcessIdentity::OfThisProcess().ToText()));
  RendezvousOptions options = OptionsAt(store->getPort(), 1, absl::Seconds(60));
  options.store_is_served = true;
  options.prefix = "ssl";
  absl::Status of_rank_one;
  std::thread other([&] { of_rank_one = Rendezvous::Open(options).status(); });
  store->wait({"ssl/start/1/member/1"});
  options.rank = 0;
  EXPECT_OK(Rendezvous::Open(options));
  other.join();
  EXPECT_OK(of_rank_one);
}

TEST(RendezvousTest, TwoProcessesAsOneRank_AreRefusedAtOnce) {
  const auto store = ServeStore();
  for (const absl::Status& status : OpenBoth(store->getPort(), "ssl")) EXPECT_OK(status);
  RendezvousOptions options = OptionsAt(store->getPort(), 1, absl::Hours(1));
  options.store_is_served = true;
  options.prefix = "ssl";
  EXPECT_THAT(Rendezvous::Open(options),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("is at 127.0.0.1:")));  // it runs: this one
}

// A supervisor is faster than the end of those that have lost the rank: rank 0's store is still there.
TEST(RendezvousTest, RankThatIsStartedAgain_WaitsForTheNextStart) {
  auto store = ServeStore();
  const int port = store->getPort();
  LeaveEarlierStart("", *store);
  absl::Status of_rank_one;
  std::thread other([&] { of_rank_one = Rendezvous::Open(OptionsAt(port, 1, absl::Seconds(60))).status(); });
  while (store->add("taken/1", 0) < 2) std::this_thread::yield();  // it has met the store that is about to go
  store.reset();
  const auto rank_zero = Rendezvous::Open(OptionsAt(port, 0, absl::Seconds(60)));  // it is the store
  EXPECT_OK(rank_zero);
  other.join();
  EXPECT_OK(of_rank_one);
}

TEST(RendezvousTest, RankThatIsStartedAgain_SaysWhoWasThereWhenNothingFollows) {
  const auto store = ServeStore();
  LeaveEarlierStart("", *store);
  EXPECT_THAT(Rendezvous::Open(OptionsAt(store->getPort(), 1, absl::Milliseconds(300))),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("rank 1 (process ")));
}

TEST(RendezvousTest, ServedStoreThatIsNotThere_IsNamedAsTheLaunchers) {
  const int port = ServeStore()->getPort();  // which is closed again
  RendezvousOptions options = OptionsAt(port, 0, absl::Milliseconds(300));
  options.store_is_served = true;
  const absl::Status status = Rendezvous::Open(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr(absl::StrCat("did not reach the launcher's store at 127.0.0.1:", port))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
}

// The system of a process that is stopped accepts connections for it.
TEST(RendezvousTest, RankZeroThatIsStopped_IsWaitedForOnlySoLong) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int port = ntohs(address.sin_port);
  const absl::Status status = Rendezvous::Open(OptionsAt(port, 1, absl::Milliseconds(300))).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               AllOf(HasSubstr(absl::StrCat("rank 1 was let in at 127.0.0.1:", port)),
                                     HasSubstr("heard nothing from rank 0 within 300ms"))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCausePeer);
  close(listener);
}

}  // namespace
}  // namespace ssl
