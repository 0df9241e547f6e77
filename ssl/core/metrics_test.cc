// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metrics.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/record_function.h>

#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

TEST_F(MetricStoreTest, SinksOfOnePlace_AreOne) {
  class PlacedSink : public MemorySink {
   public:
    PlacedSink(std::string place, std::vector<MetricReport>* reports) : MemorySink(reports), place_(std::move(place)) {}
    std::string place() const override { return place_; }

   private:
    const std::string place_;
  };
  std::vector<MetricReport> reports;
  for (const char* place : {"a", "a", "b", "", ""}) metrics_.AddSink(std::make_unique<PlacedSink>(place, &reports));
  ASSERT_OK(metrics_.Report(1, 0, *communicator_));
  EXPECT_EQ(reports.size(), 4u) << "a, b, and both that have no place";
}

TEST_F(MetricStoreTest, Sum_Max_MinAndMean_AreOverTheWindow) {
  ASSERT_OK(metrics_.Declare("sum", {MetricReduction::kSum}));
  ASSERT_OK(metrics_.Declare("max", {MetricReduction::kMax}));
  ASSERT_OK(metrics_.Declare("min", {MetricReduction::kMin}));
  for (const double value : {-2.0, -5.0, -3.5}) {
    for (const char* name : {"sum", "max", "min", "mean"}) metrics_.Add(name, value);
  }
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_THAT(report.values, ElementsAre(Pair("max", -2.0), Pair("mean", -3.5), Pair("min", -5.0), Pair("sum", -10.5)));
}

TEST_F(MetricStoreTest, DeclaredButNotObserved_IsNotReported) {
  ASSERT_OK(metrics_.Declare("max", {MetricReduction::kMax}));
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_TRUE(report.values.empty());
  EXPECT_EQ(metrics_.History("max"), nullptr);
  metrics_.Set("lr", 0.5);
  EXPECT_THAT(metrics_.Names(), ElementsAre("lr", "max"));
}

TEST_F(MetricStoreTest, NaN_IsNotHiddenByAnotherValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const MetricReduction reduction :
       {MetricReduction::kMean, MetricReduction::kSum, MetricReduction::kMax, MetricReduction::kMin}) {
    MetricStore metrics;
    ASSERT_OK(metrics.Declare("x", {reduction}));
    for (const double value : {1.0, nan, 2.0}) metrics.Add("x", value);
    ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics.Report(1, 0, *communicator_));
    EXPECT_TRUE(std::isnan(report.values.at("x")));
  }
}

TEST_F(MetricStoreTest, AnotherRule_IsRefused) {
  ASSERT_OK(metrics_.Declare("time", {MetricReduction::kMax, 20}));
  EXPECT_OK(metrics_.Declare("time", {MetricReduction::kMax, 20}));
  EXPECT_THAT(metrics_.Declare("time", {MetricReduction::kMax}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "metric 'time' is declared as max of observations, but is already max of medians of 20 "
                       "iterations; expected one rule for a name, declared before its first use"));
  metrics_.Add("loss", 1.0);
  EXPECT_OK(metrics_.Declare("loss", {}));  // the rule that it has by then
  EXPECT_THAT(metrics_.Declare("loss", {MetricReduction::kMean, 20}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("already mean of observations;")));
  metrics_.Set("lr", 1.0);
  EXPECT_THAT(metrics_.Declare("lr", {}), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("that is set;")));
}

TEST_F(MetricStoreTest, NameThatIsAddedAndSet_IsRefusedByTheReport) {
  metrics_.Add("loss", 1.0);
  metrics_.Set("loss", 1.0);
  EXPECT_THAT(metrics_.Report(1, 0, *communicator_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("metric 'loss' was both added and set")));
}

TEST_F(MetricStoreTest, TensorsThatNobodyReports_DoNotPileUp) {
  std::vector<at::Tensor> values;
  for (int64_t i = 0; i < 2 * MetricStore::kHistoryLength; ++i) {
    values.push_back(at::full({}, static_cast<double>(i)));
    metrics_.Add("loss", values.back());
  }
  int64_t kept = 0;
  for (const at::Tensor& value : values) kept += value.use_count() > 1 ? 1 : 0;
  EXPECT_LE(kept, MetricStore::kHistoryLength);
  EXPECT_EQ(metrics_.History("loss")->GlobalMean(), (2.0 * MetricStore::kHistoryLength - 1.0) / 2.0);
}

TEST_F(MetricStoreTest, Scopes_NestAndEndWithTheirBlock) {
  {
    const MetricScope a(metrics_, "a");
    {
      const MetricScope b(metrics_, "b");
      metrics_.Add("x", 1.0);
      ASSERT_OK(metrics_.Declare("x", {}));
      EXPECT_EQ(metrics_.History("x")->Latest().value, 1.0);
      metrics_.AddHistogram("h", at::full({2}, 1.0));
      ASSERT_OK(metrics_.AddImage("i", at::full({1, 1, 3}, 7, at::kByte)));
    }
    metrics_.Set("y", 2.0);
  }
  metrics_.Add("z", 3.0);
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_THAT(report.values, ElementsAre(Pair("a/b/x", 1.0), Pair("a/y", 2.0), Pair("z", 3.0)));
  EXPECT_THAT(report.histograms, ElementsAre(Pair("a/b/h", _)));
  EXPECT_THAT(report.images, ElementsAre(Pair("a/b/i", _)));
}

TEST_F(MetricStoreTest, Scope_EndsWithAnException) {
  try {
    const MetricScope scope(metrics_, "a");
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    metrics_.Add("x", 1.0);
  }
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_THAT(report.values, ElementsAre(Pair("x", 1.0)));
}

TEST_F(MetricStoreTest, HistogramsAndImages_AreInOneReport) {
  metrics_.AddHistogram("weights", at::full({4}, 1.0));
  metrics_.AddHistogram("weights", at::full({6}, 2.0));
  ASSERT_OK(metrics_.AddImage("crop", at::full({2, 1, 3}, 200, at::kByte)));
  EXPECT_THAT(metrics_.AddImage("crop", at::full({2, 1}, 200, at::kByte)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_EQ(report.histograms.at("weights").count, 6);
  EXPECT_EQ(report.images.at("crop").height, 2);
  ASSERT_OK_AND_ASSIGN(const MetricReport next, metrics_.Report(2, 0, *communicator_));
  EXPECT_TRUE(next.histograms.empty());
  EXPECT_TRUE(next.images.empty());
}

// LiBai keeps the last value of a name: of two evaluations within a window the first is lost, and so is the last of a
// run. Each is a report of its own here.
TEST_F(MetricStoreTest, EachEvaluation_ReachesEverySinkAndLeavesTheWindowOpen) {
  std::vector<MetricReport> written[2];
  for (auto& reports : written) metrics_.AddSink(std::make_unique<MemorySink>(&reports));
  metrics_.Add("loss", 1.0);
  ASSERT_OK(metrics_.Write({10, 0, {{"accuracy", 0.5}}}, *communicator_));
  metrics_.Add("loss", 3.0);
  ASSERT_OK(metrics_.Write({15, 0, {{"accuracy", 0.75}}}, *communicator_));
  ASSERT_OK(metrics_.Report(20, 0, *communicator_));
  ASSERT_OK(metrics_.Write({20, 0, {{"accuracy", 1.0}}}, *communicator_));
  for (const auto& reports : written) {
    ASSERT_EQ(reports.size(), 4u);
    EXPECT_THAT(reports[0].values, ElementsAre(Pair("accuracy", 0.5)));
    EXPECT_THAT(reports[1].values, ElementsAre(Pair("accuracy", 0.75)));
    EXPECT_EQ(reports[1].iteration, 15);
    EXPECT_THAT(reports[2].values, ElementsAre(Pair("loss", 2.0)));
    EXPECT_THAT(reports[3].values, ElementsAre(Pair("accuracy", 1.0)));
  }
}

TEST(MetricStoreRanksTest, EachReduction_IsOverAllRanks) {
  std::vector<MetricReport> reports(3);
  ASSERT_OK(ThreadWorld(3, absl::Seconds(30)).Run([&reports](Communicator& communicator) -> absl::Status {
    MetricStore metrics;
    SSL_RETURN_IF_ERROR(metrics.Declare("sum", {MetricReduction::kSum}));
    SSL_RETURN_IF_ERROR(metrics.Declare("max", {MetricReduction::kMax}));
    SSL_RETURN_IF_ERROR(metrics.Declare("min", {MetricReduction::kMin}));
    SSL_RETURN_IF_ERROR(metrics.Declare("slowest", {MetricReduction::kMax, 2}));
    const double rank = static_cast<double>(communicator.rank());
    // Rank r observes r + 1 values, all of them -10 (r + 1).
    for (int i = 0; i <= communicator.rank(); ++i) {
      for (const char* name : {"mean", "sum", "max", "min"}) metrics.Add(name, -10.0 * (rank + 1.0));
    }
    for (const int64_t iteration : {1, 2, 3}) {
      metrics.set_iteration(iteration);
      metrics.Add("slowest", rank == 1.0 ? static_cast<double>(iteration) : 0.0);
    }
    SSL_ASSIGN_OR_RETURN(reports[communicator.rank()], metrics.Report(3, 0, communicator));
    return absl::OkStatus();
  }));
  for (const MetricReport& report : reports) {
    EXPECT_THAT(report.values, ElementsAre(Pair("max", -10.0), Pair("mean", DoubleEq(-140.0 / 6.0)), Pair("min", -30.0),
                                           Pair("slowest", 2.5), Pair("sum", -140.0)));
  }
}

// Counts collectives.
class CountingCommunicator : public Communicator {
 public:
  explicit CountingCommunicator(int* sums) : sums_(sums) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    if (op == ReduceOp::kSum) ++*sums_;
    return absl::OkStatus();
  }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return tensor.unsqueeze(0); }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override { return absl::UnimplementedError("one"); }

 private:
  int* sums_;
};

TEST_F(MetricStoreTest, AllReductions_AreOneCollective) {
  int sums = 0;
  CountingCommunicator communicator(&sums);
  ASSERT_OK(metrics_.Declare("sum", {MetricReduction::kSum}));
  ASSERT_OK(metrics_.Declare("max", {MetricReduction::kMax}));
  ASSERT_OK(metrics_.Declare("min", {MetricReduction::kMin, 5}));
  for (const char* name : {"mean", "sum", "max", "min"}) metrics_.Add(name, 1.0);
  ASSERT_OK(metrics_.Report(1, 0, communicator));
  EXPECT_EQ(sums, 1);
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

// As many of them, so that a sum fits; it would be one of different things.
TEST(MetricStoreRanksTest, OtherNamesOrRulesOnARank_AreAnErrorOnAllRanks) {
  for (const bool other_rule : {false, true}) {
    absl::Status status_of[2];
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
      const bool is_other = communicator.rank() == 1;
      MetricStore metrics;
      if (is_other && other_rule) {
        SSL_RETURN_IF_ERROR(metrics.Declare("loss", {MetricReduction::kMean, /*median_window=*/2}));
      }
      metrics.Add(is_other && !other_rule ? "words" : "loss", 1.0);
      status_of[communicator.rank()] = metrics.Report(4, 0, communicator).status();
      return absl::OkStatus();
    }));
    for (const absl::Status& status : status_of) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("expected every rank to add the same names"));
    }
    EXPECT_THAT(std::string(status_of[0].message()), AllOf(HasSubstr("rank 0 "), HasSubstr("loss"))) << other_rule;
  }
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
    EXPECT_THAT(status_of[1], StatusIs(absl::StatusCode::kAborted, HasSubstr("writing metrics failed on rank 0 ")));
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

// Each copy waits for a GPU.
TEST_F(MetricStoreTest, AReport_CopiesTheObservationsOfAllNamesAtOnce) {
  for (int name = 0; name < 20; ++name) {
    metrics_.Add(absl::StrCat("single/", name), at::full({}, name, at::kFloat));
    metrics_.Add(absl::StrCat("double/", name), at::full({}, name + 0.1, at::kDouble));
  }
  metrics_.Add("mixed", at::full({1}, 1.0, at::kFloat));
  metrics_.Add("mixed", 2.1);
  static int stacks;  // a callback without a capture
  stacks = 0;
  const at::CallbackHandle counting = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& operation) -> std::unique_ptr<at::ObserverContext> {
        if (std::string(operation.name()) == "aten::stack") ++stacks;
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(1, 0, *communicator_));
  at::removeCallback(counting);
  EXPECT_EQ(stacks, 2) << "one for each type";
  for (int name = 0; name < 20; ++name) {
    EXPECT_EQ(report.values.at(absl::StrCat("single/", name)), name);
    EXPECT_EQ(report.values.at(absl::StrCat("double/", name)), name + 0.1);
  }
  EXPECT_DOUBLE_EQ(report.values.at("mixed"), 1.55);
  EXPECT_EQ(metrics_.History("mixed")->Latest().value, 2.1) << "in the order in which they came";
}

}  // namespace
}  // namespace ssl
