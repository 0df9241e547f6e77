// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/session.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/simclr_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EstimateEngineTest : public SimclrRun {
 protected:
  absl::StatusOr<EngineReport> Estimate() { return RunEngine("estimate"); }
};

TEST_F(EstimateEngineTest, WholeTraining_FromAFewStepsThatLeaveNothing) {
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Estimate());
  EXPECT_THAT(report.summary, AllOf(HasSubstr("estimate: 60 updates of "), HasSubstr(" of training, until "),
                                    HasSubstr("\nmemory of this process, seen in 7 updates: ")));
  const double step = results_.FindPath("estimate.seconds_per_update")->AsDouble().value();
  EXPECT_GT(step, 0.0);
  EXPECT_DOUBLE_EQ(results_.FindPath("estimate.seconds")->AsDouble().value(), 60 * step);
  EXPECT_THAT(PosixFileSystem().List(directory_).value(), IsEmpty());
}

TEST_F(EstimateEngineTest, TrainingOfOneStep_IsMeasuredAsWhole) {
  Set("OPTIMIZER.num_epochs", "1");
  Set("DATA.TRAIN.DATA_LIMIT", "16");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Estimate());
  EXPECT_THAT(report.summary, HasSubstr("estimate: 1 update of "));
}

// A run that was stopped, and then one that is at its end.
TEST_F(EstimateEngineTest, UpdatesThatAreDone_AreNotCounted) {
  Set("OPTIMIZER.num_epochs", "4");
  Set("TEST_MODEL", "False");
  {
    ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(config_, registries_, {}));
    ASSERT_OK(session->Start());
    for (int i = 0; i < 5; ++i) ASSERT_OK(session->Step());
    session->RequestStop(15);
    ASSERT_OK(session->Finish());
  }
  ASSERT_OK_AND_ASSIGN(EngineReport report, Estimate());
  EXPECT_THAT(report.summary, HasSubstr("estimate: 7 updates beside the 5 that are done of "));
  EXPECT_EQ(results_.FindPath("estimate.updates")->text(), "7");
  {
    ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(config_, registries_, {}));
    ASSERT_OK(session->Start());
    ASSERT_OK(session->Train());
  }
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(report, Estimate());
  EXPECT_EQ(report.summary, "estimate: nothing is left to train, 12 updates of 12 are done");
  EXPECT_THAT(log.Text(), Not(HasSubstr("measuring")));
  EXPECT_EQ(results_.FindPath("estimate.updates")->text(), "7") << "of the estimate before";
}

// A training with these settings would not begin, so that its time is of no use.
TEST_F(EstimateEngineTest, WhatATrainingWouldBeRefusedFor_IsAnError) {
  Set("OPTIMIZER.num_epochs", "4");
  Set("TEST_MODEL", "False");
  {
    ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(config_, registries_, {}));
    ASSERT_OK(session->Start());
    ASSERT_OK(session->Step());
    session->RequestStop(15);
    ASSERT_OK(session->Finish());
  }
  Set("OPTIMIZER.num_epochs", "5");
  const CapturedLog log;
  EXPECT_THAT(Estimate().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("the run was started with other settings"), HasSubstr("num_epochs"))));
  EXPECT_THAT(log.Text(), Not(HasSubstr("measuring")));
  EXPECT_EQ(results_.FindPath("estimate"), nullptr);
}

TEST_F(EstimateEngineTest, SaysWhatItDoesBeforeItMeasures) {
  const CapturedLog log;
  ASSERT_OK(Estimate());
  EXPECT_THAT(log.Text(),
              AllOf(HasSubstr("estimate: measuring the first 7 of 60 updates"),
                    HasSubstr("iteration 7: the estimate has measured enough"), Not(HasSubstr(": measured"))));
}

TEST_F(EstimateEngineTest, Stop_IsSeen) {
  stop_.Request(kStopTerminate);
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Estimate());
  EXPECT_TRUE(report.stopped);
  EXPECT_THAT(report.summary, HasSubstr("estimate: stopped before the end"));
  EXPECT_FALSE(results_.FindPath("estimate") != nullptr);
}

}  // namespace
}  // namespace ssl
