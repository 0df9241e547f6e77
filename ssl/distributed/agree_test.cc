// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/agree.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/host_name.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
    EXPECT_THAT(agreed[rank], StatusIs(absl::StatusCode::kAborted, absl::StrCat("saving failed on rank 1 (on ",
                                                                                HostName("unknown"), "): torn")));
  }
}

TEST(AgreeOnStatusTest, OfSeveralFailuresTheLowestRanksIsTold) {
  const std::vector<absl::Status> agreed =
      Agreed({absl::OkStatus(), absl::InternalError("one"), absl::NotFoundError("two")});
  EXPECT_THAT(agreed[0], StatusIs(absl::StatusCode::kAborted, AllOf(HasSubstr("rank 1 "), HasSubstr("): one"))));
  EXPECT_THAT(agreed[1], StatusIs(absl::StatusCode::kInternal, "one"));
  EXPECT_THAT(agreed[2], StatusIs(absl::StatusCode::kNotFound, "two"));
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
