// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/background_task.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(BackgroundTaskTest, Work_RunsBesideTheCaller) {
  absl::Notification begun;
  absl::Notification released;
  BackgroundTask task;
  ASSERT_OK(task.Start([&] {
    begun.Notify();
    released.WaitForNotification();
    return absl::DataLossError("disk is gone");
  }));
  begun.WaitForNotification();
  EXPECT_TRUE(task.started());
  EXPECT_FALSE(task.done());
  EXPECT_THAT(task.Start([] { return absl::OkStatus(); }), StatusIs(absl::StatusCode::kFailedPrecondition));
  released.Notify();
  EXPECT_THAT(task.Finish(), StatusIs(absl::StatusCode::kDataLoss, "disk is gone"));
  EXPECT_FALSE(task.started());
  EXPECT_TRUE(task.done());
}

TEST(BackgroundTaskTest, Finish_WithoutWorkIsOk_AndTasksFollowEachOther) {
  BackgroundTask task;
  EXPECT_OK(task.Finish());
  ASSERT_OK(task.Start([] { return absl::InternalError("first"); }));
  EXPECT_FALSE(task.Finish().ok());
  ASSERT_OK(task.Start([] { return absl::OkStatus(); }));
  EXPECT_OK(task.Finish());
}

TEST(BackgroundTaskTest, Destructor_WaitsForTheWork) {
  bool ended = false;
  {
    BackgroundTask task;
    ASSERT_OK(task.Start([&ended] {
      ended = true;
      return absl::OkStatus();
    }));
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace ssl
