// SPDX-License-Identifier: Apache-2.0
//
// One suite for every Communicator: the local world, worlds of threads and worlds of processes, on the CPU and on a
// GPU, follow the same rules.
#include "ssl/distributed/communicator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/testing/communicator_worlds.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using World = CommunicatorWorld;

class CommunicatorTest : public ::testing::TestWithParam<World> {};

at::Tensor Filled(double value) { return at::full({2, 3}, value, at::kFloat); }

TEST_P(CommunicatorTest, RanksAreNumberedFromZero) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), GetParam().size);
    EXPECT_GE(communicator.rank(), 0);
    EXPECT_LT(communicator.rank(), communicator.size());
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, DuplicateServesAnotherThreadAtTheSameTime) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> duplicate, communicator.Duplicate());
    EXPECT_EQ(duplicate->rank(), communicator.rank());
    EXPECT_EQ(duplicate->size(), communicator.size());
    const int64_t rank = communicator.rank();
    const auto sum = [rank](Communicator& over, int64_t rounds, int64_t* total) {
      absl::Status status;
      for (int64_t round = 0; round < rounds; ++round) {
        at::Tensor value = at::full({1}, rank + round, at::kLong);
        status.Update(over.AllReduce(value, ReduceOp::kSum));
        *total += value.item<int64_t>();
      }
      return status;
    };
    // Different numbers of operations: those of one communicator may not answer those of the other.
    int64_t other_total = 0;
    absl::Status other_status;
    std::thread other([&] { other_status = sum(*duplicate, 50, &other_total); });
    int64_t total = 0;
    absl::Status status = sum(communicator, 20, &total);
    other.join();
    status.Update(other_status);
    const int64_t size = communicator.size();
    const auto expected = [size](int64_t rounds) {
      return rounds * size * (size - 1) / 2 + size * rounds * (rounds - 1) / 2;
    };
    EXPECT_EQ(total, expected(20));
    EXPECT_EQ(other_total, expected(50));
    return status;
  }));
}

TEST_P(CommunicatorTest, AllReduceSumsOverRanksInPlace) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    at::Tensor tensor = at::arange(3, at::kFloat) + communicator.rank();
    SSL_RETURN_IF_ERROR(communicator.AllReduce(tensor, ReduceOp::kSum));
    EXPECT_TRUE(at::equal(tensor, at::arange(3, at::kFloat) * size + size * (size - 1) / 2));
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, AllReduceTakesMeanAndMaximum) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    at::Tensor mean = at::full({1}, communicator.rank(), at::kDouble);
    at::Tensor maximum = at::full({1}, communicator.rank(), at::kLong);
    SSL_RETURN_IF_ERROR(communicator.AllReduce(mean, ReduceOp::kMean));
    SSL_RETURN_IF_ERROR(communicator.AllReduce(maximum, ReduceOp::kMax));
    EXPECT_EQ(mean.item<double>(), (communicator.size() - 1) / 2.0);
    EXPECT_EQ(maximum.item<int64_t>(), communicator.size() - 1);
    return absl::OkStatus();
  }));
}

// Rank r holds r, so the sum, the mean and the maximum are known in every type; a bool is whether any rank has true.
TEST_P(CommunicatorTest, AllReduceTakesEveryType) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    const int64_t sum = size * (size - 1) / 2;
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte, at::kChar,
                                      at::kShort, at::kInt, at::kLong, at::kBool}) {
      SCOPED_TRACE(at::toString(type));
      const auto reduced = [&](ReduceOp op) {
        at::Tensor tensor = at::full({2, 3}, communicator.rank(), at::kDouble).to(type);
        EXPECT_OK(communicator.AllReduce(tensor, op));
        EXPECT_EQ(tensor.scalar_type(), type);
        return tensor;
      };
      const auto filled = [&](double value) { return at::full({2, 3}, value, at::kDouble).to(type); };
      EXPECT_TRUE(at::equal(reduced(ReduceOp::kSum), filled(sum)));
      EXPECT_TRUE(at::equal(reduced(ReduceOp::kMax), filled(size - 1)));
      EXPECT_TRUE(at::equal(reduced(ReduceOp::kMean), filled(sum / static_cast<double>(size))));
    }
    return absl::OkStatus();
  }));
}

// Also with other operations between start and end, which go behind those that were started.
TEST_P(CommunicatorTest, StartedAllReduces_AreThoseOfTheCalls) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    const int64_t rank = communicator.rank();
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int64_t i = 0; i < 20; ++i) {
      tensors.push_back(Filled(rank + i));
      works.push_back(communicator.StartAllReduce(tensors.back(), i % 2 == 0 ? ReduceOp::kMean : ReduceOp::kMax));
    }
    at::Tensor between = Filled(rank);
    SSL_RETURN_IF_ERROR(communicator.AllReduce(between, ReduceOp::kSum));
    EXPECT_TRUE(at::equal(between, Filled(size * (size - 1) / 2)));
    SSL_RETURN_IF_ERROR(communicator.Barrier());
    for (int64_t i = 0; i < 20; ++i) {
      SSL_RETURN_IF_ERROR(works[i]->Wait());
      EXPECT_TRUE(at::equal(tensors[i], Filled(i % 2 == 0 ? i + (size - 1) / 2.0 : i + size - 1))) << i;
    }
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, StartedAllReduce_KeepsTypeShapeAndStrides) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    at::Tensor columns = Filled(communicator.rank()).to(at::kShort).t();
    at::Tensor empty = at::full({0, 4}, 1, at::kFloat);
    const std::unique_ptr<Work> first = communicator.StartAllReduce(columns, ReduceOp::kSum);
    const std::unique_ptr<Work> second = communicator.StartAllReduce(empty, ReduceOp::kMean);
    SSL_RETURN_IF_ERROR(second->Wait());
    SSL_RETURN_IF_ERROR(first->Wait());
    EXPECT_EQ(columns.strides(), at::IntArrayRef({1, 3}));
    EXPECT_TRUE(at::equal(columns, Filled(size * (size - 1) / 2).to(at::kShort).t()));
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, ReduceScatter_GivesEachRankItsRow) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    const int64_t rank = communicator.rank();
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kLong, at::kByte}) {
      SCOPED_TRACE(at::toString(type));
      // Row r of rank q is q + 10 r.
      const at::Tensor rows = (at::arange(size).view({size, 1, 1}) * 10 + rank).expand({size, 2, 3}).to(type);
      const double own = 10.0 * rank;
      SSL_ASSIGN_OR_RETURN(const at::Tensor sum, communicator.ReduceScatter(rows, ReduceOp::kSum));
      SSL_ASSIGN_OR_RETURN(const at::Tensor mean, communicator.ReduceScatter(rows, ReduceOp::kMean));
      SSL_ASSIGN_OR_RETURN(const at::Tensor maximum, communicator.ReduceScatter(rows, ReduceOp::kMax));
      EXPECT_TRUE(at::equal(sum, Filled(size * own + size * (size - 1) / 2.0).to(type)));
      EXPECT_TRUE(at::equal(mean, Filled(own + (size - 1) / 2.0).to(type)));
      EXPECT_TRUE(at::equal(maximum, Filled(own + size - 1).to(type)));
      EXPECT_EQ(rows[0][0][0].item<int64_t>(), rank) << "what was passed stays as it is";
    }
    SSL_ASSIGN_OR_RETURN(const at::Tensor scalar,
                         communicator.ReduceScatter(at::full({size}, 2.0, at::kDouble), ReduceOp::kSum));
    EXPECT_EQ(scalar.dim(), 0);
    EXPECT_EQ(scalar.item<double>(), 2.0 * size);
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, ReduceScatterOfOtherThanARowForEachRank_IsInvalidArgument) {
  const absl::Status status = GetParam().run([](Communicator& communicator) {
    return communicator.ReduceScatter(at::full({communicator.size() + 1, 2}, 0, at::kFloat), ReduceOp::kSum).status();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(", 2], expected ")));
}

TEST_P(CommunicatorTest, Split_MakesWorldsOfTheRanksOfOneColor) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    const int64_t color = rank % 2 == 0 ? -7 : 3;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> group, communicator.Split(color));
    EXPECT_EQ(group->rank(), rank / 2);
    EXPECT_EQ(group->size(), (communicator.size() + 1 - rank % 2) / 2);
    // Different numbers of operations in the groups, and those of the whole world in between.
    for (int64_t round = 0; round < 3 + rank % 2; ++round) {
      SSL_ASSIGN_OR_RETURN(const at::Tensor all, group->AllGather(at::full({1}, rank, at::kLong)));
      EXPECT_TRUE(at::equal(all.view({-1}), at::arange(group->size()) * 2 + rank % 2));
    }
    at::Tensor sum = at::full({1}, 1, at::kLong);
    SSL_RETURN_IF_ERROR(communicator.AllReduce(sum, ReduceOp::kSum));
    EXPECT_EQ(sum.item<int64_t>(), communicator.size());
    // Groups of groups, and of all.
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> alone, group->Split(rank));
    EXPECT_EQ(alone->size(), 1);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> whole, communicator.Split(0));
    EXPECT_EQ(whole->rank(), rank);
    EXPECT_EQ(whole->size(), communicator.size());
    return whole->Barrier();
  }));
}

TEST_P(CommunicatorTest, MeanOfSmallIntegers_DoesNotOverflow) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    at::Tensor tensor = at::full({1}, 200, at::kByte);
    SSL_RETURN_IF_ERROR(communicator.AllReduce(tensor, ReduceOp::kMean));
    EXPECT_EQ(tensor.item<uint8_t>(), 200);
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, MaximumKeepsTheNaNOfAnyRank) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    at::Tensor tensor = at::full({3}, communicator.rank(), at::kFloat);
    if (communicator.rank() == communicator.size() - 1) tensor[0] = std::nan("");
    if (communicator.rank() == 0) tensor[1] = std::nan("");
    SSL_RETURN_IF_ERROR(communicator.AllReduce(tensor, ReduceOp::kMax));
    EXPECT_TRUE(at::equal(tensor.isnan(), at::arange(3) < 2));
    EXPECT_EQ(tensor[2].item<float>(), communicator.size() - 1);
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, ShapesWithoutDimensionsOrElements_AndStrides_AreKept) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const int64_t size = communicator.size();
    at::Tensor scalar = at::full({}, communicator.rank(), at::kFloat);
    at::Tensor empty = at::full({0, 4}, 1, at::kFloat);
    at::Tensor columns = (at::arange(6, at::kFloat) + communicator.rank()).view({2, 3}).t();
    SSL_RETURN_IF_ERROR(communicator.AllReduce(scalar, ReduceOp::kSum));
    SSL_RETURN_IF_ERROR(communicator.AllReduce(empty, ReduceOp::kMax));
    SSL_RETURN_IF_ERROR(communicator.AllReduce(columns, ReduceOp::kMax));
    EXPECT_EQ(scalar.item<float>(), size * (size - 1) / 2);
    EXPECT_EQ(columns.strides(), at::IntArrayRef({1, 3}));
    EXPECT_TRUE(at::equal(columns, (at::arange(6, at::kFloat) + size - 1).view({2, 3}).t()));
    SSL_ASSIGN_OR_RETURN(const at::Tensor scalars, communicator.AllGather(scalar));
    SSL_ASSIGN_OR_RETURN(const at::Tensor empties, communicator.AllGather(empty));
    SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, communicator.AllGather(columns + communicator.rank()));
    EXPECT_EQ(scalars.sizes(), at::IntArrayRef({size}));
    EXPECT_EQ(empties.sizes(), at::IntArrayRef({size, 0, 4}));
    EXPECT_TRUE(at::equal(gathered[size - 1], columns + (size - 1)));
    at::Tensor part = at::full({2, 2}, communicator.rank() + 7, at::kFloat).t()[0];
    SSL_RETURN_IF_ERROR(communicator.Broadcast(part, size - 1));
    SSL_RETURN_IF_ERROR(communicator.Broadcast(empty, 0));
    EXPECT_TRUE(at::equal(part, at::full({2}, size + 6, at::kFloat)));
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, GatherAndBroadcastMoveEveryType) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    for (const at::ScalarType type : {at::kBool, at::kShort, at::kBFloat16, at::kComplexFloat}) {
      SCOPED_TRACE(at::toString(type));
      at::Tensor tensor = at::full({3}, communicator.rank(), at::kDouble).to(type);
      SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(tensor));
      EXPECT_TRUE(
          at::equal(all[communicator.size() - 1], at::full({3}, communicator.size() - 1, at::kDouble).to(type)));
      SSL_RETURN_IF_ERROR(communicator.Broadcast(tensor, communicator.size() - 1));
      EXPECT_TRUE(at::equal(tensor, all[communicator.size() - 1]));
    }
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, AllGatherStacksByRank) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(at::full({2}, communicator.rank(), at::kLong)));
    EXPECT_EQ(all.sizes(), at::IntArrayRef({communicator.size(), 2}));
    for (int64_t rank = 0; rank < communicator.size(); ++rank) EXPECT_EQ(all[rank][1].item<int64_t>(), rank);
    return absl::OkStatus();
  }));
}

TEST_P(CommunicatorTest, BroadcastTakesTheRootsValue) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    at::Tensor tensor = at::full({2}, communicator.rank() + 5, at::kLong);
    SSL_RETURN_IF_ERROR(communicator.Broadcast(tensor, 0));
    EXPECT_EQ(tensor[0].item<int64_t>(), 5);
    return communicator.Barrier();
  }));
}

TEST_P(CommunicatorTest, BroadcastFromARankThatDoesNotExist_IsInvalidArgument) {
  const absl::Status status = GetParam().run([](Communicator& communicator) {
    at::Tensor tensor = at::full({1}, 0, at::kLong);
    return communicator.Broadcast(tensor, communicator.size());
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(CommunicatorTest, AgreeOnStatus_OneFailureFailsAllRanks) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) {
    const bool last = communicator.rank() == communicator.size() - 1;
    const absl::Status own = last ? absl::DataLossError("torn") : absl::OkStatus();
    const absl::Status agreed = AgreeOnStatus(own, "saving", communicator);
    EXPECT_EQ(agreed.code(), last ? absl::StatusCode::kDataLoss : absl::StatusCode::kAborted);
    return AgreeOnStatus(absl::OkStatus(), "saving", communicator);
  }));
}

// In one process and over several: nobody waits for a timeout, and other communicators of the same ranks go on.
TEST_P(CommunicatorTest, Abort_EndsTheOperationsOfTheOthers) {
  EXPECT_OK(GetParam().run([](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> duplicate, communicator.Duplicate());
    const bool is_first = communicator.rank() == 0;
    if (is_first) duplicate->Abort(absl::ResourceExhaustedError("no room"));
    for (int call = 0; call < 2; ++call) {
      const absl::Status status = duplicate->Barrier();
      // Of a rank alone nothing has to end.
      if (communicator.size() == 1 && status.ok()) continue;
      if (is_first) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("no room")));
      }
    }
    return communicator.Barrier();
  }));
}

INSTANTIATE_TEST_SUITE_P(Worlds, CommunicatorTest, ::testing::ValuesIn(CommunicatorWorlds()),
                         [](const auto& info) { return info.param.name; });

TEST(ThreadWorldTest, StartedOperationWithoutARank_IsDeadlineExceededWhenWaitedFor) {
  ThreadWorld world(2, absl::Milliseconds(50));
  absl::Notification is_over;
  const absl::Status status = world.Run([&](Communicator& communicator) -> absl::Status {
    if (communicator.rank() == 1) {
      is_over.WaitForNotification();
      return absl::OkStatus();
    }
    at::Tensor tensor = Filled(0);
    const absl::Status waited = communicator.StartAllReduce(tensor, ReduceOp::kSum)->Wait();
    is_over.Notify();
    return waited;
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("all-reduce: 1 of 2 ranks")));
}

TEST(ThreadWorldTest, RankThatHasReturned_IsNotWaitedForAndTakesPartInTheNextRun) {
  ThreadWorld world(2, absl::Minutes(10));
  for (int run = 0; run < 2; ++run) {
    const absl::Status status = world.Run([](Communicator& communicator) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> duplicate, communicator.Duplicate());
      if (communicator.rank() == 1) return absl::OkStatus();
      EXPECT_THAT(duplicate->Barrier(), StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
      return communicator.Barrier();
    });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in barrier for one that left")));
  }
}

}  // namespace
}  // namespace ssl
