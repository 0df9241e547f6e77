// SPDX-License-Identifier: Apache-2.0
//
// Which observations a report holds: those since the last one, or of the last iterations.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/metrics.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class MetricWindowTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  MetricStore metrics_;
};

TEST_F(MetricWindowTest, ObservationThatIsLeftOut_WasNone) {
  at::Tensor left_out = at::full({}, 1.0);
  metrics_.AddUnless(left_out, "norm", at::full({}, std::numeric_limits<double>::infinity()));
  ASSERT_OK_AND_ASSIGN(MetricReport report, metrics_.Report(1, 0, *communicator_));
  EXPECT_TRUE(report.values.empty());
  EXPECT_EQ(metrics_.History("norm"), nullptr);

  metrics_.AddUnless(left_out, "norm", at::full({}, 7.0));
  left_out.zero_();  // the first one's is as it was
  metrics_.AddUnless(left_out, "norm", at::full({}, 3.0));
  metrics_.AddUnless({}, "norm", at::full({}, 5.0));
  ASSERT_OK_AND_ASSIGN(report, metrics_.Report(2, 0, *communicator_));
  EXPECT_THAT(report.values, ElementsAre(Pair("norm", 4.0)));
}

// detectron2's test_events.py: one value a step, the last one counts; a report after every 20th.
TEST_F(MetricWindowTest, SetValues_AreTheLastOfTheirWindow) {
  std::vector<double> written;
  for (int iteration = 0; iteration < 60; ++iteration) {
    metrics_.set_iteration(iteration);
    metrics_.Set("key", iteration);
    if ((iteration + 1) % 20 != 0) continue;
    ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(iteration, 0, *communicator_));
    written.push_back(report.values.at("key"));
  }
  EXPECT_THAT(written, ElementsAre(19, 39, 59));
}

// The same with a rarer key before it. There each iteration gets a line of its own; here a report has all of its
// window, and the iteration of each value is in the history.
TEST_F(MetricWindowTest, RareValues_AreInTheNextReportWithTheirIterationInTheHistory) {
  std::vector<std::vector<double>> written;
  std::vector<int64_t> iterations;
  for (int iteration = 0; iteration < 60; ++iteration) {
    metrics_.set_iteration(iteration);
    if (iteration % 17 == 0) metrics_.Set("key2", iteration);
    metrics_.Set("key", iteration);
    if ((iteration + 1) % 20 != 0) continue;
    ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(iteration, 0, *communicator_));
    written.push_back({report.values.at("key2"), report.values.at("key")});
    for (const char* key : {"key2", "key"}) iterations.push_back(metrics_.History(key)->Latest().iteration);
  }
  EXPECT_THAT(written, ElementsAre(ElementsAre(17, 19), ElementsAre(34, 39), ElementsAre(51, 59)));
  EXPECT_THAT(iterations, ElementsAre(17, 19, 34, 39, 51, 59));
}

// detectron2's test_events.py: windows are counted in iterations, not in values.
TEST_F(MetricWindowTest, Medians_AreOverTheLastIterations) {
  const std::vector<std::pair<const char*, int>> periods = {{"key1", 1}, {"key2", 2}, {"key3", 5}};
  for (const auto& [key, period] : periods) ASSERT_OK(metrics_.Declare(key, {MetricReduction::kMean, 10}));
  std::vector<std::vector<double>> written;
  for (int iteration = 0; iteration < 20; ++iteration) {
    metrics_.set_iteration(iteration);
    for (const auto& [key, period] : periods) {
      if ((iteration + 1) % period == 0) metrics_.Add(key, at::full({}, iteration, at::kFloat));
    }
    if ((iteration + 1) % 10 != 0) continue;
    ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(iteration, 0, *communicator_));
    written.push_back({report.values.at("key1"), report.values.at("key2"), report.values.at("key3")});
    EXPECT_EQ(metrics_.History("key1")->CountAfter(iteration - 10), 10);
    EXPECT_EQ(metrics_.History("key2")->CountAfter(iteration - 10), 5);
    EXPECT_EQ(metrics_.History("key3")->CountAfter(iteration - 10), 2);
  }
  EXPECT_THAT(written, ElementsAre(ElementsAre(4.5, 5, 6.5), ElementsAre(14.5, 15, 16.5)));
}

TEST_F(MetricWindowTest, MedianWindow_OutlivesReports) {
  ASSERT_OK(metrics_.Declare("time", {MetricReduction::kMean, 3}));
  std::vector<double> written;
  for (const double value : {9.0, 1.0, 2.0, 8.0}) {
    const int64_t iteration = static_cast<int64_t>(written.size()) + 1;
    metrics_.set_iteration(iteration);
    metrics_.Add("time", value);
    ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(iteration, 0, *communicator_));
    written.push_back(report.values.at("time"));
  }
  EXPECT_THAT(written, ElementsAre(9.0, 5.0, 2.0, 2.0));
}

TEST_F(MetricWindowTest, MedianWindow_MayBeLongerThanAHistoryOtherwiseIs) {
  ASSERT_OK(metrics_.Declare("time", {MetricReduction::kMean, 3 * MetricStore::kHistoryLength}));
  for (int64_t i = 0; i < 3 * MetricStore::kHistoryLength; ++i) {
    metrics_.set_iteration(i);
    metrics_.Add("time", static_cast<double>(i));
  }
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(2999, 0, *communicator_));
  EXPECT_EQ(report.values.at("time"), 1499.5);
}

TEST_F(MetricWindowTest, History_HasNumbersAndTensorsInTheOrderInWhichTheyCame) {
  metrics_.set_iteration(1);
  metrics_.Add("loss", 3.0);
  metrics_.set_iteration(2);
  metrics_.Add("loss", at::full({}, 5.0, at::kFloat));
  metrics_.Add("loss", 4.0);
  const MetricHistory* history = metrics_.History("loss");
  ASSERT_NE(history, nullptr);
  ASSERT_EQ(history->size(), 3);
  EXPECT_EQ(history->Latest().value, 4.0);
  EXPECT_EQ(history->Latest().iteration, 2);
  EXPECT_EQ(history->FromNewest(1).value, 5.0);
  EXPECT_EQ(history->FromNewest(2).iteration, 1);
  EXPECT_EQ(metrics_.History("los"), nullptr);
  // Reading it has taken nothing from the report.
  ASSERT_OK_AND_ASSIGN(const MetricReport report, metrics_.Report(2, 0, *communicator_));
  EXPECT_EQ(report.values.at("loss"), 4.0);
}

// The trainer tells the store where it is: from OnBatchStart to OnStep, and of a test phase, the updates done.
TEST(MetricIterationsTest, ObservationsHaveTheIterationOfTheirStep) {
  Registries registries;
  ASSERT_OK(RegisterFakes(&registries));
  ASSERT_OK_AND_ASSIGN(auto session, Session::Create(FakeConfig(""), registries, {}));
  std::vector<std::string> events;
  for (const char* event : {"OnForward", "OnStep"}) {
    auto hook = std::make_unique<RecordingHook>(event, HookStage::kObserve, &events);
    hook->At(event, [event](StepContext& context) {
      context.metrics.Add(event, 1.0);
      return absl::OkStatus();
    });
    ASSERT_OK(session->AddHook(std::move(hook)));
  }
  ASSERT_OK(session->Start());
  for (int step = 0; step < 3; ++step) ASSERT_OK(session->Step());
  for (const char* event : {"OnForward", "OnStep"}) {
    const MetricHistory& history = *session->metrics().History(event);
    ASSERT_EQ(history.size(), 3) << event;
    for (int64_t age = 0; age < 3; ++age) EXPECT_EQ(history.FromNewest(age).iteration, 3 - age) << event;
  }
}

}  // namespace
}  // namespace ssl
