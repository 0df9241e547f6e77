// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads, in a store of this process. Ranks as processes: gloo_communicator_test and rank_torture.
#include "ssl/distributed/hearing.h"

#include <atomic>
#include <chrono>
#include <cstdint>
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
    ++questions_;
    return HashStore::check(keys);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    ++questions_;
    HashStore::wait(keys, timeout);
  }

  int64_t questions() const { return questions_; }

 private:
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

  static std::string Name(int64_t rank) {
    return absl::StrCat("rank ", rank, " (", ProcessIdentity::OfThisProcess().Name(), ")");
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

TEST_F(HearingTest, OtherOperations_AreNamedWithTheirRanks) {
  const std::vector<PeerReport> reports = Hold({"barrier 1", "broadcast 1", "barrier 1"}, absl::Seconds(60));
  for (const int rank : {0, 2}) EXPECT_EQ(reports[rank].text, absl::StrCat(Name(1), " is in broadcast 1"));
  EXPECT_EQ(reports[1].text, absl::StrCat(Name(0), ", ", Name(2), " are in barrier 1"));
}

}  // namespace
}  // namespace ssl
