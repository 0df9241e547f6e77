// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metrics.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <memory>
#include <new>
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

// Fails to write, one way or another.
class BrokenSink : public MetricSink {
 public:
  explicit BrokenSink(bool throws) : throws_(throws) {}
  absl::Status Write(const MetricReport&) override {
    if (throws_) throw std::bad_alloc();
    return absl::ResourceExhaustedError("full");
  }
  absl::Status Flush() override { return absl::ResourceExhaustedError("full"); }

 private:
  const bool throws_;
};

TEST(MetricStoreRanksTest, ErrorOfTheWriter_ReachesAllRanks) {
  for (const bool throws : {false, true}) {
    absl::Status status_of[2];
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
      MetricStore metrics;
      metrics.AddSink(std::make_unique<BrokenSink>(throws));
      metrics.Add("loss", 1.0);
      status_of[communicator.rank()] = metrics.Report(1, 0, communicator).status();
      return absl::OkStatus();
    }));
    EXPECT_THAT(status_of[0],
                StatusIs(absl::StatusCode::kResourceExhausted, throws ? "metric sink: out of memory" : "full"));
    EXPECT_THAT(status_of[1], StatusIs(absl::StatusCode::kAborted, "writing metrics failed on another rank"));
  }
}

TEST_F(MetricStoreTest, OneBrokenSink_DoesNotKeepTheReportFromTheOthers) {
  std::vector<MetricReport> written;
  metrics_.AddSink(std::make_unique<BrokenSink>(false));
  metrics_.AddSink(std::make_unique<MemorySink>(&written));
  metrics_.Add("loss", 1.0);
  EXPECT_FALSE(metrics_.Report(1, 0, *communicator_).ok());
  EXPECT_EQ(written.size(), 1u);
}

TEST_F(MetricStoreTest, Flush_ReturnsTheFirstError) {
  EXPECT_OK(metrics_.Flush());
  metrics_.AddSink(std::make_unique<BrokenSink>(false));
  EXPECT_THAT(metrics_.Flush(), StatusIs(absl::StatusCode::kResourceExhausted, "full"));
}

}  // namespace
}  // namespace ssl
