// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/timed_communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/clock.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr absl::Duration kBusy = absl::Milliseconds(1);

void BeBusy() {
  const absl::Time end = Clock::Real().Now() + kBusy;
  while (Clock::Real().Now() < end) continue;
}

class SlowWork : public Work {
 public:
  absl::Status Wait() override {
    BeBusy();
    return absl::UnavailableError("broken");
  }
};

// Rank 1 of 3, whose operations take kBusy at least. An all-reduce adds 1; the others fail as their names say.
class SlowCommunicator : public Communicator {
 public:
  // aborted: counts the communicators that were aborted, here and of those made by this one.
  explicit SlowCommunicator(int* aborted) : aborted_(aborted) {}
  int64_t rank() const override { return 1; }
  int64_t size() const override { return 3; }
  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    BeBusy();
    tensor.add_(1);
    return absl::OkStatus();
  }
  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override {
    BeBusy();
    return std::make_unique<SlowWork>();
  }
  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override { return Fail("scatter"); }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return Fail("gather"); }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override { return Fail("broadcast"); }
  absl::Status Barrier() override { return Fail("barrier"); }
  void LetOthersGoOn(absl::FunctionRef<void()> wait) override {
    BeBusy();
    wait();
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    return std::make_unique<SlowCommunicator>(aborted_);
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override { return Duplicate(); }
  void Abort(const absl::Status& why) override { ++*aborted_; }

 private:
  static absl::Status Fail(const char* what) {
    BeBusy();
    return absl::UnavailableError(what);
  }

  int* const aborted_;
};

// The seconds that `communicator` notes while `call` runs, which has to take kBusy.
double Noted(const TimedCommunicator& communicator, const std::function<void()>& call) {
  const absl::Time begin = Clock::Real().Now();
  const double before = communicator.waiting().seconds();
  call();
  const double noted = communicator.waiting().seconds() - before;
  EXPECT_LE(noted, absl::ToDoubleSeconds(Clock::Real().Now() - begin) + 1e-6) << "no time counts twice";
  return noted;
}

class TimedCommunicatorTest : public ::testing::Test {
 protected:
  void ExpectNoted(int operations, const std::function<void()>& call) {
    EXPECT_GE(Noted(communicator_, call), operations * absl::ToDoubleSeconds(kBusy) - 1e-6);
  }

  int aborted_ = 0;
  SlowCommunicator base_{&aborted_};
  TimedCommunicator communicator_{base_};
  at::Tensor tensor_ = at::full({2}, 5.0);
};

TEST_F(TimedCommunicatorTest, EveryOperation_IsPassedOnAndNoted) {
  EXPECT_EQ(communicator_.rank(), 1);
  EXPECT_EQ(communicator_.size(), 3);
  ExpectNoted(1, [&] { EXPECT_OK(communicator_.AllReduce(tensor_, ReduceOp::kSum)); });
  EXPECT_EQ(tensor_[0].item<float>(), 6.0F);
  const auto code = absl::StatusCode::kUnavailable;
  ExpectNoted(1, [&] { EXPECT_THAT(communicator_.AllGather(tensor_), StatusIs(code, "gather")); });
  ExpectNoted(1, [&] { EXPECT_THAT(communicator_.ReduceScatter(tensor_, ReduceOp::kSum), StatusIs(code, "scatter")); });
  ExpectNoted(1, [&] { EXPECT_THAT(communicator_.Broadcast(tensor_, 0), StatusIs(code, "broadcast")); });
  ExpectNoted(1, [&] { EXPECT_THAT(communicator_.Barrier(), StatusIs(code, "barrier")); });
  bool waited = false;
  ExpectNoted(1, [&] { communicator_.LetOthersGoOn([&] { waited = true; }); });
  EXPECT_TRUE(waited);
}

TEST_F(TimedCommunicatorTest, WhatARankDoesWhileOthersGoOn_IsNoWaiting) {
  absl::Duration work;
  const absl::Time begin = Clock::Real().Now();
  const double noted = Noted(communicator_, [&] {
    communicator_.LetOthersGoOn([&] {
      const absl::Time work_begin = Clock::Real().Now();
      BeBusy();
      work = Clock::Real().Now() - work_begin;
    });
  });
  EXPECT_LE(noted + absl::ToDoubleSeconds(work), absl::ToDoubleSeconds(Clock::Real().Now() - begin) + 1e-6);
}

TEST_F(TimedCommunicatorTest, AStartedReduction_IsNotedAtItsStartAndWhereItIsWaitedFor) {
  std::unique_ptr<Work> work;
  ExpectNoted(1, [&] { work = communicator_.StartAllReduce(tensor_, ReduceOp::kSum); });
  ExpectNoted(1, [&] { EXPECT_THAT(work->Wait(), StatusIs(absl::StatusCode::kUnavailable, "broken")); });
}

TEST_F(TimedCommunicatorTest, DuplicatesAndGroups_NoteInTheSamePlace) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, communicator_.Duplicate());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> group, duplicate->Split(0));
  ExpectNoted(2, [&] {
    EXPECT_OK(duplicate->AllReduce(tensor_, ReduceOp::kSum));
    EXPECT_OK(group->AllReduce(tensor_, ReduceOp::kSum));
  });
}

TEST_F(TimedCommunicatorTest, Abort_ReachesDuplicatesAndGroupsThatLive) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> duplicate, communicator_.Duplicate());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Communicator> group, duplicate->Split(0));
  ASSERT_OK(communicator_.Duplicate().status());  // it is gone at once
  communicator_.Abort(absl::InternalError("no weights"));
  EXPECT_EQ(aborted_, 3);
}

}  // namespace
}  // namespace ssl
