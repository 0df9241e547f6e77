// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/admission.h"

#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

ConfigNode ConfigOf(const std::string& directory) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  return config;
}

// Tells when it has met others twice.
class PatientCommunicator : public CountingCommunicator {
 public:
  PatientCommunicator(Communicator& base, CollectiveCounts* counts, absl::Notification* has_met_twice)
      : CountingCommunicator(base, counts), has_met_twice_(*has_met_twice) {}

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    if (++calls_ == 2) has_met_twice_.Notify();
    return CountingCommunicator::AllReduce(tensor, op);
  }

 private:
  std::atomic<int> calls_{0};
  absl::Notification& has_met_twice_;
};

// One operation waits for TIMEOUT_SECONDS, and reading a checkpoint may take longer.
TEST(CheckAdmissionTest, WhileRankZeroReads_OthersMeetItAgainAndAgain) {
  const std::string run = MakeTempDir("run");
  FaultFileSystem slow(PosixFileSystem(), run);
  slow.set_fault_reads(true);
  absl::Notification has_met_twice;
  slow.ActAtCall(1, [&] { has_met_twice.WaitForNotification(); });
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    CollectiveCounts counts;
    absl::Notification unused;
    PatientCommunicator patient(communicator, &counts, communicator.rank() == 1 ? &has_met_twice : &unused);
    return CheckAdmission(ConfigOf(run), Registries(), 2, slow, patient);
  }));
  EXPECT_GT(slow.calls(), 0);
}

TEST(CheckAdmissionTest, WhatRankZeroRefuses_AllRanksDo) {
  const std::string run = MakeTempDir("run");
  ConfigNode config = ConfigOf(run);
  config.SetPath("CHECKPOINT.RESUME_FROM", ConfigNode::FromInt(5));
  EXPECT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    EXPECT_THAT(CheckAdmission(config, Registries(), 2, PosixFileSystem(), communicator),
                StatusIs(communicator.rank() == 0 ? absl::StatusCode::kNotFound : absl::StatusCode::kAborted,
                         HasSubstr("there is no ")));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
