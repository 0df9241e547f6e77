// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/host_values.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostValues, AreTheMeansOverTheRanks) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    FakeStep step(communicator);
    const double rank = static_cast<double>(communicator.rank());
    step.context.meter_reports = {{"loss", {{"mean", "", rank}}},
                                  {"words", {{"seen", "", 10.0 + rank}, {"seen", "res5", rank}}, "Host"},
                                  {"lines", {{"read", "", 4.0 * rank}}, "Host"}};
    EXPECT_TRUE(HasHostValues(step.context));
    EXPECT_OK(AverageHostValues(step.context));
    EXPECT_EQ(step.context.meter_reports[0].values[0].value, rank) << "a meter has reduced its own";
    EXPECT_EQ(step.context.meter_reports[1].values[0].value, 10.5);
    EXPECT_EQ(step.context.meter_reports[1].values[1].value, 0.5);
    EXPECT_EQ(step.context.meter_reports[2].values[0].value, 2.0);
    return absl::OkStatus();
  }));
}

TEST(HostValues, NamesThatDifferBetweenRanks_AreRefusedOnAll) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) -> absl::Status {
    FakeStep step(communicator);
    if (communicator.rank() == 0) step.context.meter_reports = {{"words", {{"seen", "", 1.0}}, "Host"}};
    const char* said = communicator.rank() == 0 ? "rank 0 has reported Host/words_seen at iteration "
                                                : "rank 1 has reported no Host/ metric at iteration ";
    EXPECT_THAT(AverageHostValues(step.context),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(said), HasSubstr("expected every rank to report the same names"))));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
