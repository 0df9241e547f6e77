// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/agree.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/host_name.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/long_work.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWhat[] = "saving";

// What each rank hears, each of which brings one status.
std::vector<absl::Status> Agreed(const std::vector<absl::Status>& own) {
  std::vector<absl::Status> agreed(own.size());
  EXPECT_OK(ThreadWorld(static_cast<int64_t>(own.size()), absl::Seconds(60)).Run([&](Communicator& communicator) {
    agreed[communicator.rank()] = AgreeOnStatus(own[communicator.rank()], kWhat, communicator);
    return communicator.Barrier();  // ranks that had not all done the same would not meet here
  }));
  return agreed;
}

TEST(AgreeOnStatusTest, SuccessOfAllIsOk) {
  for (const absl::Status& status : Agreed({absl::OkStatus(), absl::OkStatus()})) EXPECT_OK(status);
}

TEST(AgreeOnStatusTest, AFailureIsToldToAllWithItsRankAndHost) {
  const std::vector<absl::Status> agreed = Agreed({absl::OkStatus(), absl::DataLossError("torn"), absl::OkStatus()});
  EXPECT_THAT(agreed[1], StatusIs(absl::StatusCode::kDataLoss, "torn"));
  for (const int rank : {0, 2}) {
    EXPECT_THAT(agreed[rank], StatusIs(absl::StatusCode::kAborted,
                                       absl::StrCat("saving failed on rank 1 (on ", HostName("unknown"), "): torn")));
  }
}

TEST(AgreeOnStatusTest, OfSeveralFailuresTheLowestRanksIsTold) {
  const std::vector<absl::Status> agreed =
      Agreed({absl::OkStatus(), absl::InternalError("one"), absl::NotFoundError("two")});
  EXPECT_THAT(agreed[0], StatusIs(absl::StatusCode::kAborted, AllOf(HasSubstr("rank 1 "), HasSubstr("): one"))));
  EXPECT_THAT(agreed[1], StatusIs(absl::StatusCode::kInternal, "one"));
  EXPECT_THAT(agreed[2], StatusIs(absl::StatusCode::kNotFound, "two"));
}

TEST(AgreeOnStatusTest, TheSameWordsAreSaidOnceOnAHost) {
  const std::vector<absl::Status> agreed =
      Agreed({absl::OkStatus(), absl::NotFoundError("gone"), absl::NotFoundError("gone"), absl::NotFoundError("torn")});
  EXPECT_TRUE(IsSaidOnThisHost(agreed[0])) << "what it has heard of rank 1";
  EXPECT_FALSE(IsSaidOnThisHost(agreed[1])) << "it says them";
  EXPECT_TRUE(IsSaidOnThisHost(agreed[2]));
  EXPECT_THAT(agreed[2], StatusIs(absl::StatusCode::kNotFound, "gone"));
  EXPECT_FALSE(IsSaidOnThisHost(agreed[3])) << "of its own";
}

TEST(AgreeOnStatusTest, AStopOfOneIsAStopOfAll) {
  const std::vector<absl::Status> agreed = Agreed({absl::OkStatus(), absl::CancelledError("stopped here")});
  EXPECT_THAT(agreed[0], StatusIs(absl::StatusCode::kCancelled, "saving: stopped on rank 1"));
  EXPECT_THAT(agreed[1], StatusIs(absl::StatusCode::kCancelled, "stopped here"));
  EXPECT_TRUE(IsStopOfAnotherRank(agreed[0]));
  EXPECT_FALSE(IsStopOfAnotherRank(agreed[1]));
}

// A stop may be what a failure elsewhere looks like from here; it does not hide it.
TEST(AgreeOnStatusTest, AFailureCountsMoreThanAStop) {
  const std::vector<absl::Status> agreed = Agreed({absl::CancelledError("stopped"), absl::DataLossError("torn")});
  EXPECT_THAT(agreed[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("failed on rank 1 ")));
  EXPECT_THAT(agreed[1], StatusIs(absl::StatusCode::kDataLoss, "torn"));
}

absl::Status AgreeOn(LongWork* work, Communicator& communicator) {
  const absl::Status agreed = AgreeOnWork([&] { return work->Do(communicator); }, kWhat, communicator);
  work->End(communicator);
  return agreed;
}

TEST(AgreeOnWorkTest, MayTakeLongerThanAnOperationWaits) {
  LongWork work;
  EXPECT_OK(ThreadWorld(2, LongWork::kTimeout).Run([&](Communicator& communicator) {
    CountingCommunicator counting(communicator, &work.counts());
    return AgreeOn(&work, communicator.rank() == 1 ? counting : communicator);
  }));
  EXPECT_GE(work.met(), LongWork::kMeetings);
}

// The ranks beside it in its process have to go on, or the other process would wait for these.
TEST(AgreeOnWorkTest, MayTakeLongerThanAnOperationWaits_OfAVirtualRank) {
  LongWork work;
  EXPECT_OK(ThreadWorld(2, LongWork::kTimeout).Run([&](Communicator& processes) {
    CountingCommunicator counting(processes, &work.counts());
    Communicator& own = processes.rank() == 1 ? static_cast<Communicator&>(counting) : processes;
    return VirtualWorld(4, own).Run([&](Communicator& communicator) { return AgreeOn(&work, communicator); });
  }));
  EXPECT_GE(work.met(), LongWork::kMeetings);
}

TEST(AgreeOnWorkTest, AFailureIsToldToAll) {
  EXPECT_OK(ThreadWorld(3, absl::Seconds(60)).Run([](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    const auto work = [rank]() -> absl::Status {
      if (rank == 1) throw std::runtime_error("torn");
      return absl::OkStatus();
    };
    const absl::Status agreed = AgreeOnWork(work, kWhat, communicator);
    if (rank == 1) {
      EXPECT_THAT(agreed, StatusIs(absl::StatusCode::kInternal, "saving: torn"));
    } else {
      EXPECT_THAT(agreed, StatusIs(absl::StatusCode::kAborted,
                                   AllOf(HasSubstr("saving failed on rank 1 (on "), HasSubstr("torn"))));
    }
    EXPECT_OK(AgreeOnWork([] { return absl::OkStatus(); }, kWhat, communicator));
    return communicator.Barrier();
  }));
}

TEST(OnRankZeroTest, OthersHearOfItAlone) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) {
    bool has_worked = false;
    const auto work = [&] {
      has_worked = true;
      return absl::DataLossError("torn");
    };
    const bool works = communicator.rank() == 0;
    EXPECT_THAT(OnRankZero(work, kWhat, communicator),
                StatusIs(works ? absl::StatusCode::kDataLoss : absl::StatusCode::kAborted, HasSubstr("torn")));
    EXPECT_EQ(has_worked, works);
    return communicator.Barrier();
  }));
}

// While it lives this process can start no thread: there is no memory for a stack of that size.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t attributes;
    EXPECT_EQ(pthread_attr_init(&attributes), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(AgreeOnWorkTest, InAWorldOfOne_NeedsNoThread) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  CapturedLog log;
  const NoMoreThreads none;
  EXPECT_OK(AgreeOnWork([] { return absl::OkStatus(); }, kWhat, *communicator));
  EXPECT_THAT(AgreeOnWork([] { return absl::DataLossError("torn"); }, kWhat, *communicator),
              StatusIs(absl::StatusCode::kDataLoss, "torn"));
  EXPECT_THAT(log.warnings, IsEmpty());
}

TEST(AgreeOnWorkTest, WithoutAThread_WorksFirstAndMeetsAfterwards) {
  CapturedLog log;
  std::unique_ptr<NoMoreThreads> none;
  std::atomic<int> done{0};
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    if (communicator.rank() == 0) none = std::make_unique<NoMoreThreads>();
    EXPECT_OK(communicator.Barrier());
    const auto work = [&] {
      ++done;
      return communicator.rank() == 0 ? absl::OkStatus() : absl::DataLossError("torn");
    };
    EXPECT_THAT(AgreeOnWork(work, kWhat, communicator),
                StatusIs(communicator.rank() == 0 ? absl::StatusCode::kAborted : absl::StatusCode::kDataLoss,
                         HasSubstr("torn")));
    return communicator.Barrier();
  }));
  EXPECT_EQ(done, 2);
  EXPECT_THAT(log.warnings, Contains(HasSubstr("saving: no thread for meeting the other ranks")).Times(2));
}

TEST(AnyRankTest, OneIsEnough) {
  EXPECT_OK(ThreadWorld(3, absl::Seconds(60)).Run([](Communicator& communicator) {
    EXPECT_TRUE(AnyRank(communicator.rank() == 1, communicator).value_or(false));
    EXPECT_FALSE(AnyRank(false, communicator).value_or(true));
    return absl::OkStatus();
  }));
}

TEST(BroadcastTextTest, ATextOfAnyLengthIsThatOfAll) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) {
    std::string text = communicator.rank() == 1 ? "of rank 1" : "another one, of rank 0";
    EXPECT_OK(BroadcastText(1, &text, communicator));
    EXPECT_EQ(text, "of rank 1");
    if (communicator.rank() == 0) text = "";
    EXPECT_OK(BroadcastText(0, &text, communicator));
    EXPECT_EQ(text, "");
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
