// SPDX-License-Identifier: Apache-2.0
//
// What every communicator does is in communicator_test.cc, for virtual ranks as well.
#include "ssl/distributed/virtual_world.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/default_generators.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRanks = 4;

uint32_t BytesOf(const at::Tensor& tensor) {
  return Crc32c({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
}

// What a rank has after sums of numbers that it has drawn itself: more than are gathered at a time.
absl::StatusOr<int64_t> DrawAndReduce(Communicator& communicator) {
  at::manual_seed(communicator.rank());
  at::Tensor values = at::randn({(1 << 20) + 7}).mul_(static_cast<double>(communicator.rank() + 1));
  SSL_RETURN_IF_ERROR(communicator.AllReduce(values, ReduceOp::kMean));
  at::Tensor more = at::randn({1000}).mul_(values.narrow(0, 0, 1000));  // drawn after the others had their turns
  SSL_RETURN_IF_ERROR(communicator.AllReduce(more, ReduceOp::kSum));
  return static_cast<int64_t>(BytesOf(values)) ^ (static_cast<int64_t>(BytesOf(more)) << 32);
}

// Of one process with all virtual ranks.
int64_t OfOneProcess() {
  int64_t found = 0;
  const auto local = MakeLocalCommunicator();
  EXPECT_OK(VirtualWorld(kRanks, *local).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const int64_t own, DrawAndReduce(communicator));
    if (communicator.rank() == 0) found = own;
    return absl::OkStatus();
  }));
  return found;
}

class VirtualWorldOnProcessesTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(VirtualWorldOnProcessesTest, ResultsAreThoseOfOneProcess_BitByBit) {
  EXPECT_OK(ProcessWorld(GetParam()).Run([](Communicator& processes) -> absl::Status {
    const int64_t expected = OfOneProcess();
    return VirtualWorld(kRanks, processes).Run([&](Communicator& communicator) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const int64_t found, DrawAndReduce(communicator));
      EXPECT_EQ(found, expected) << "virtual rank " << communicator.rank();
      return absl::OkStatus();
    });
  }));
}

INSTANTIATE_TEST_SUITE_P(Processes, VirtualWorldOnProcessesTest, ::testing::Values(1, 2, 4));

// A device after an error: of a rank's first turn, and of one that it takes again within an operation.
TEST(VirtualWorldTest, GeneratorThatFails_EndsAllRanksWithItsError) {
  StandinDevice::Install();
  const auto local = MakeLocalCommunicator();
  for (const int after : {0, 1, 2}) {
    SCOPED_TRACE(after);
    StandinDevice::FailGeneratorState(after);
    const absl::Status status =
        VirtualWorld(2, *local).Run([](Communicator& communicator) -> absl::Status { return communicator.Barrier(); });
    EXPECT_THAT(status.message(), HasSubstr("a broken generator"));
  }
}

TEST(VirtualWorldTest, RanksTakeTurns) {
  const auto local = MakeLocalCommunicator();
  std::vector<std::string> events;  // without a mutex: one rank runs at a time
  ASSERT_OK(VirtualWorld(2, *local).Run([&](Communicator& communicator) -> absl::Status {
    const std::string name = communicator.rank() == 0 ? "a" : "b";
    for (int i = 0; i < 3; ++i) {
      events.push_back(name + "1");
      events.push_back(name + "2");
      SSL_RETURN_IF_ERROR(communicator.Barrier());
    }
    return absl::OkStatus();
  }));
  ASSERT_EQ(events.size(), 12);
  for (size_t i = 0; i < events.size(); i += 2) EXPECT_EQ(events[i][0], events[i + 1][0]) << i;
}

TEST(VirtualWorldTest, DrawsOfTheRanks_LeaveTheHostsAsTheyWere) {
  const auto local = MakeLocalCommunicator();
  const auto draw = [](Communicator&) {
    at::randn({100});
    return absl::OkStatus();
  };
  at::manual_seed(5);
  const at::Tensor expected = at::randn({3});
  at::manual_seed(5);
  ASSERT_OK(VirtualWorld(2, *local).Run(draw));
  EXPECT_TRUE(at::randn({3}).equal(expected));
}

// In the tests of this file behind this one the accelerator is there, too.
TEST(VirtualWorldTest, OnAnAccelerator_EachRankDrawsItsOwnNumbers) {
  StandinDevice::Install();
  const auto draw = [] { return at::rand({4}, StandinDevice::device()).cpu(); };
  const auto draw_after = [&](int64_t seed) {
    SeedGenerators(static_cast<uint64_t>(seed));
    return draw();
  };
  std::vector<at::Tensor> alone;
  for (int64_t rank = 0; rank < kRanks; ++rank) alone.push_back(draw_after(rank));
  std::vector<at::Tensor> together(kRanks);
  SeedGenerators(77);
  const at::Tensor of_host = draw();
  SeedGenerators(77);
  const auto local = MakeLocalCommunicator();
  ASSERT_OK(VirtualWorld(kRanks, *local).Run([&](Communicator& communicator) -> absl::Status {
    SeedGenerators(static_cast<uint64_t>(communicator.rank()));
    SSL_RETURN_IF_ERROR(communicator.Barrier());  // the others seed theirs
    together[communicator.rank()] = draw();
    return absl::OkStatus();
  }));
  for (int64_t rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(together[rank].equal(alone[rank])) << "rank " << rank;
  EXPECT_TRUE(draw().equal(of_host)) << "the host draws on as if nothing had been";
}

TEST(VirtualWorldTest, ARankThatFails_EndsThoseThatWaitForIt) {
  const auto local = MakeLocalCommunicator();
  std::vector<absl::Status> ends(3);
  const absl::Status status = VirtualWorld(3, *local).Run([&](Communicator& communicator) {
    const int64_t rank = communicator.rank();
    ends[rank] = rank == 1 ? absl::DataLossError("torn") : communicator.Barrier();
    return ends[rank];
  });
  EXPECT_THAT(ends[0], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("barrier: virtual rank 1")));
  EXPECT_THAT(ends[2], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("virtual rank")));
  EXPECT_FALSE(status.ok());
}

TEST(VirtualWorldTest, ExceptionsAreErrors) {
  const auto local = MakeLocalCommunicator();
  const absl::Status status = VirtualWorld(2, *local).Run([&](Communicator& communicator) {
    at::full({2}, 1.0).add_(at::full({3}, 1.0));
    return absl::OkStatus();
  });
  EXPECT_THAT(status.message(), HasSubstr("virtual rank"));
}

TEST(VirtualWorldTest, DifferentOperations_AreNamed) {
  const auto local = MakeLocalCommunicator();
  const absl::Status status = VirtualWorld(2, *local).Run([&](Communicator& communicator) {
    at::Tensor one = at::full({1}, 1.0);
    return communicator.rank() == 0 ? communicator.AllReduce(one, ReduceOp::kSum) : communicator.Barrier();
  });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInternal, ::testing::AllOf(HasSubstr("all-reduce"), HasSubstr("barrier"))));
}

TEST(VirtualWorldTest, DifferentReductionsAndShapes_AreNamed) {
  const auto local = MakeLocalCommunicator();
  const auto run = [&local](ReduceOp op, int64_t count) {
    return VirtualWorld(2, *local).Run([&](Communicator& communicator) {
      at::Tensor values = at::full({communicator.rank() == 0 ? 1 : count}, 1.0);
      return communicator.AllReduce(values, communicator.rank() == 0 ? ReduceOp::kSum : op);
    });
  };
  EXPECT_THAT(run(ReduceOp::kMax, 1), StatusIs(absl::StatusCode::kInternal, HasSubstr("(maximum)")));
  EXPECT_THAT(run(ReduceOp::kSum, 3), StatusIs(absl::StatusCode::kInternal, HasSubstr("[3]")));
}

// Of one process, whose Abort ends when `may_end` is told, as that of one that waits for others.
class SlowToAbort : public Communicator {
 public:
  SlowToAbort(std::promise<void>& begun, std::future<void>& may_end) : begun_(begun), may_end_(may_end) {}

  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  absl::Status AllReduce(at::Tensor&, ReduceOp) override { return absl::OkStatus(); }
  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return tensor.unsqueeze(0).clone(); }
  absl::Status Broadcast(at::Tensor&, int64_t) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    return std::make_unique<SlowToAbort>(begun_, may_end_);
  }
  void Abort(const absl::Status&) override {
    begun_.set_value();
    EXPECT_EQ(may_end_.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "no other rank went on";
  }

 private:
  std::promise<void>& begun_;
  std::future<void>& may_end_;
};

TEST(VirtualWorldTest, RanksGoOn_WhileOneEndsItsPart) {
  std::promise<void> begun;
  std::promise<void> went_on;
  std::future<void> may_end = went_on.get_future();
  SlowToAbort process(begun, may_end);
  EXPECT_OK(VirtualWorld(2, process).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> duplicate, communicator.Duplicate());
    if (communicator.rank() == 0) {
      duplicate->Abort(absl::ResourceExhaustedError("no room"));
    } else {
      communicator.LetOthersGoOn([&] { begun.get_future().wait(); });  // then it has to get its turn
      went_on.set_value();
    }
    return communicator.Barrier();
  }));
}

TEST(VirtualWorldTest, ProcessesThatDoNotDivideTheRanks_AreRefused) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& processes) {
    EXPECT_THAT(VirtualWorld(3, processes).Run([](Communicator&) { return absl::OkStatus(); }),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 virtual ranks on 2 processes")));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
