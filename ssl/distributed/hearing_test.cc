// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads, in a store of this process. Ranks as processes: gloo_communicator_test and rank_torture.
#include "ssl/distributed/hearing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/store_members.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CountingStore : public c10d::HashStore {
 public:
  void set(const std::string& key, const std::vector<uint8_t>& data) override {
    ++questions_;
    HashStore::set(key, data);
  }
  std::vector<uint8_t> get(const std::string& key) override {
    ++questions_;
    return HashStore::get(key);
  }
  int64_t add(const std::string& key, int64_t value) override {
    ++questions_;
    return HashStore::add(key, value);
  }
  bool check(const std::vector<std::string>& keys) override {
    if (answers_left_-- == 0) throw std::runtime_error("the process of who asks has ended");
    ++questions_;
    return HashStore::check(keys);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    ++questions_;
    HashStore::wait(keys, timeout);
  }

  int64_t questions() const { return questions_; }

  // Once, after so many checks.
  void FailAfter(int64_t checks) { answers_left_ = checks; }

 private:
  std::atomic<int64_t> answers_left_{-1};
  std::atomic<int64_t> questions_{0};
};

class HearingTest : public ::testing::Test {
 protected:
  // Of `size` ranks those that have an operation hold a hearing; what each has heard.
  std::vector<PeerReport> Hold(const std::vector<std::string>& operations, absl::Duration patience) {
    const auto size = static_cast<int64_t>(operations.size());
    for (int64_t rank = 0; rank < size; ++rank) Introduce(rank, size, store_);
    std::vector<PeerReport> reports(size);
    std::vector<std::thread> ranks;
    for (int64_t rank = 0; rank < size; ++rank) {
      if (operations[rank].empty()) continue;
      ranks.emplace_back([&, rank] { reports[rank] = HoldHearing({rank, size, operations[rank], patience}, store_); });
    }
    for (std::thread& rank : ranks) rank.join();
    return reports;
  }

  static std::string Name(int64_t rank) { return NameOf(rank, ProcessIdentity::OfThisProcess()); }

  static std::string NameOf(int64_t rank, const ProcessIdentity& process) {
    return absl::StrCat("rank ", rank, " (", process.Name(), ")");
  }

  // Alone, without patience.
  PeerReport HoldAs(int64_t rank, int64_t size) {
    return HoldHearing({rank, size, "barrier 1", absl::ZeroDuration()}, store_);
  }

  CountingStore store_;
};

// As many as ranks, not as their square.
TEST_F(HearingTest, RanksAskFewQuestions) {
  constexpr int64_t kRanks = 100;
  for (const PeerReport& report : Hold(std::vector<std::string>(kRanks, "barrier 1"), absl::Seconds(60))) {
    EXPECT_THAT(report.text, HasSubstr("all ranks are in this operation"));
    EXPECT_EQ(report.silent, "");
  }
  EXPECT_LE(store_.questions(), 20 * kRanks);
}

TEST_F(HearingTest, ARankThatDoesNotAnswer_IsNamedByAll) {
  const std::vector<PeerReport> reports = Hold({"barrier 1", "barrier 1", "", "barrier 1"}, absl::Milliseconds(200));
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(reports[rank].text, absl::StrCat("no answer from ", Name(2), ", which hangs, is elsewhere or ended"));
    EXPECT_EQ(reports[rank].silent, ProcessIdentity::OfThisProcess().Name());
  }
}

// The others choose another one to ask: each for itself, they would ask as often as the square of their number.
TEST_F(HearingTest, RecorderThatEnds_IsReplacedByOne) {
  constexpr int64_t kRanks = 100;
  for (int64_t rank = 0; rank < kRanks; ++rank) Introduce(rank, kRanks, store_);
  store_.FailAfter(10);
  EXPECT_THROW(HoldAs(7, kRanks), std::runtime_error);
  std::vector<std::string> operations(kRanks, "barrier 1");
  operations[7] = "";  // which it has told before
  for (const PeerReport& report : Hold(operations, absl::ZeroDuration())) EXPECT_EQ(report.silent, "");
  EXPECT_LE(store_.questions(), 40 * kRanks);
}

// A process that runs until it is told to end.
class Child {
 public:
  Child() : pid_(fork()) {
    while (pid_ == 0) pause();
    identity_ = ProcessIdentity::OfThisProcess();
    identity_.pid = pid_;
  }
  ~Child() { End(); }

  const ProcessIdentity& identity() const { return identity_; }

  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
  ProcessIdentity identity_;
};

// As on several hosts, of which the recorder's does not see the process of rank 2, and rank 1's does.
TEST_F(HearingTest, WhatHasEndedOnTheReadersHost_HasEnded) {
  Child child;
  for (int64_t rank = 0; rank < 2; ++rank) Introduce(rank, 3, store_);
  static_cast<c10d::Store&>(store_).set(MemberKey(2), absl::StrCat("3 ", child.identity().ToText()));
  EXPECT_THAT(HoldAs(0, 3).text, HasSubstr("no answer from"));
  child.End();
  const PeerReport report = HoldAs(1, 3);
  EXPECT_EQ(report.text, NameOf(2, child.identity()) + " ended");
  EXPECT_EQ(report.silent, "");
}

TEST_F(HearingTest, RanksThatHaveComeSinceTheRecord_AreNotBlamed) {
  for (int64_t rank = 0; rank < 4; ++rank) Introduce(rank, 4, store_);
  EXPECT_THAT(HoldAs(0, 4).text, HasSubstr(absl::StrCat(Name(1), ", ", Name(2), ", ", Name(3))));
  EXPECT_THAT(HoldAs(2, 4).text, AllOf(HasSubstr(Name(1)), HasSubstr(Name(3)), Not(HasSubstr(Name(2)))));
  EXPECT_EQ(HoldAs(1, 4).text, absl::StrCat("no answer from ", Name(3), ", which hangs, is elsewhere or ended"));
}

TEST_F(HearingTest, OtherOperations_AreNamedWithTheirRanks) {
  const std::vector<PeerReport> reports = Hold({"barrier 1", "broadcast 1", "barrier 1"}, absl::Seconds(60));
  for (const int rank : {0, 2}) EXPECT_EQ(reports[rank].text, absl::StrCat(Name(1), " is in broadcast 1"));
  EXPECT_EQ(reports[1].text, absl::StrCat(Name(0), ", ", Name(2), " are in barrier 1"));
}

}  // namespace
}  // namespace ssl
