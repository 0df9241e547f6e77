// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metrics.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class MetricStoreTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  MetricStore metrics_;
};

TEST_F(MetricStoreTest, Report_HoldsMeansOfTheWindow) {
  metrics_.Add("loss", 1.0);
  metrics_.Add("loss", at::full({}, 3.0));
  metrics_.Set("lr", 0.5);
  metrics_.Set("lr", 0.25);
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(7, 2, *communicator_));
  EXPECT_EQ(report.iteration, 7);
  EXPECT_EQ(report.epoch, 2);
  EXPECT_THAT(report.values, ElementsAre(Pair("loss", 2.0), Pair("lr", 0.25)));
}

TEST_F(MetricStoreTest, Report_StartsANewWindow) {
  metrics_.Add("loss", 1.0);
  ASSERT_OK(metrics_.Report(1, 0, *communicator_));
  metrics_.Add("loss", 5.0);
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(2, 0, *communicator_));
  EXPECT_THAT(report.values, ElementsAre(Pair("loss", 5.0)));
}

TEST_F(MetricStoreTest, TensorIsReadAtTheReport) {
  const at::Tensor value = at::full({}, 1.0);
  metrics_.Add("loss", value);
  value.fill_(4.0);
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_EQ(report.values.at("loss"), 4.0);
}

TEST_F(MetricStoreTest, EmptyWindow_IsAnEmptyReport) {
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_TRUE(report.values.empty());
}

TEST_F(MetricStoreTest, SinkError_IsReturned) {
  class FullSink : public MetricSink {
    absl::Status Write(const MetricReport& report) override { return absl::ResourceExhaustedError("full"); }
    absl::Status Flush() override { return absl::OkStatus(); }
  };
  metrics_.AddSink(std::make_unique<FullSink>());
  EXPECT_THAT(metrics_.Report(1, 0, *communicator_), StatusIs(absl::StatusCode::kResourceExhausted, "full"));
}

TEST(MetricStoreRanksTest, MeansAreOverAllRanksAndRankZeroWrites) {
  std::vector<MetricReport> written[2];
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&written](Communicator& communicator) -> absl::Status {
    MetricStore metrics;
    metrics.AddSink(std::make_unique<MemorySink>(&written[communicator.rank()]));
    metrics.Add("loss", 10.0 * communicator.rank());
    metrics.Add("accuracy", 1.0);
    SSL_ASSIGN_OR_RETURN(const MetricReport report, metrics.Report(1, 0, communicator));
    EXPECT_EQ(report.values.at("loss"), 5.0);
    return absl::OkStatus();
  }));
  ASSERT_EQ(written[0].size(), 1u);
  EXPECT_EQ(written[0][0].values.at("loss"), 5.0);
  EXPECT_EQ(written[0][0].values.at("accuracy"), 1.0);
  EXPECT_TRUE(written[1].empty());
}

}  // namespace
}  // namespace ssl
