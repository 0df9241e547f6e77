// SPDX-License-Identifier: Apache-2.0
//
// This package's optimizers with their work shared by ranks: what is trained is what one rank trains, bit by bit.
#include "ssl/core/sharded_optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/rank_state.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/optim/adam.h"
#include "ssl/optim/larc.h"
#include "ssl/optim/lars.h"
#include "ssl/optim/rmsprop.h"
#include "ssl/optim/sgd.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::TestWithParam;

using Make = std::function<absl::StatusOr<std::unique_ptr<Optimizer>>()>;

std::map<std::string, Make> Makers() {
  return {{"Sgd",
           [] {
             return MakeSgd({0.9, true});
           }},
          {"SgdScheduledMomentum",
           [] {
             return MakeSgd({0.0, false, "momentum"});
           }},
          {"SgdLarc",
           []() -> absl::StatusOr<std::unique_ptr<Optimizer>> {
             return MakeLarc({}, *MakeSgd({0.9, false}));
           }},
          {"Lars", []() -> absl::StatusOr<std::unique_ptr<Optimizer>> { return MakeLars({}); }},
          {"Rmsprop", [] { return MakeRmsprop({}); }},
          {"Adam", [] { return MakeAdam({}); }},
          {"AdamW", [] { return MakeAdamW({}); }}};
}

at::Tensor Values(at::IntArrayRef shape, double seed) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7 + seed).reshape(shape);
}

// One is larger than a bucket, two do not lie in memory as their elements are numbered, one gets no gradient.
std::vector<ParameterGroup> Groups() {
  ParameterGroup weights{"regularized", {"large", "convolution", "small", "transposed", "idle"}, {}, 0.1, 0.01};
  weights.parameters = {Values({600, 500}, 1.0), Values({4, 3, 2, 2}, 2.0).contiguous(at::MemoryFormat::ChannelsLast),
                        Values({5}, 3.0), Values({6, 4}, 4.0).t(), Values({7}, 5.0)};
  ParameterGroup biases{"unregularized", {"bias", "other_bias"}, {Values({3}, 6.0), Values({9}, 7.0)}, 0.05, 0.0};
  for (ParameterGroup* group : {&weights, &biases}) {
    for (at::Tensor& parameter : group->parameters) parameter.set_requires_grad(true);
  }
  return {weights, biases};
}

absl::Status Train(Optimizer& optimizer, int first_step, int steps) {
  const at::NoGradGuard no_grad;
  for (int step = first_step; step < first_step + steps; ++step) {
    double seed = 10.0 * step;
    for (ParameterGroup& group : optimizer.groups()) {
      group.learning_rate *= 0.9;  // as schedules do
      if (!group.momentum_schedule.empty()) group.momentum = 0.1 * step;
      for (size_t i = 0; i < group.parameters.size(); ++i) {
        if (group.names[i] != "idle") group.parameters[i].mutable_grad() = Values(group.parameters[i].sizes(), seed++);
      }
    }
    optimizer.Step({});
    SSL_RETURN_IF_ERROR(optimizer.GatherUpdates());
  }
  return absl::OkStatus();
}

std::vector<at::Tensor> Copies(Optimizer& optimizer) {
  std::vector<at::Tensor> copies;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (const at::Tensor& parameter : group.parameters) copies.push_back(parameter.detach().clone());
  }
  return copies;
}

void ExpectBitwiseEqual(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << "parameter " << i;
}

class ShardedOptimizerTest : public TestWithParam<std::pair<const std::string, Make>> {
 protected:
  std::unique_ptr<Optimizer> Plain() { return *GetParam().second(); }

  std::vector<at::Tensor> TrainPlain(int steps) {
    const std::unique_ptr<Optimizer> optimizer = Plain();
    EXPECT_OK(optimizer->Initialize(Groups()));
    EXPECT_OK(Train(*optimizer, 0, steps));
    return Copies(*optimizer);
  }
};

TEST_P(ShardedOptimizerTest, AnyNumberOfRanks_TrainsAsOneDoes) {
  const std::vector<at::Tensor> expected = TrainPlain(4);
  for (const int64_t ranks : {1, 2, 4, 7}) {
    SCOPED_TRACE(ranks);
    std::vector<std::vector<at::Tensor>> trained(ranks);
    ASSERT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      const std::unique_ptr<Optimizer> optimizer = ShardOptimizer(Plain(), communicator);
      SSL_RETURN_IF_ERROR(optimizer->Initialize(Groups()));
      SSL_RETURN_IF_ERROR(Train(*optimizer, 0, 4));
      trained[communicator.rank()] = Copies(*optimizer);
      return absl::OkStatus();
    }));
    for (const std::vector<at::Tensor>& of_rank : trained) ExpectBitwiseEqual(of_rank, expected);
  }
}

// 4 ranks, then 2, 1 and 4 again, the last but one without sharding.
TEST_P(ShardedOptimizerTest, StateGoesOnWithAnyNumberOfRanks) {
  const std::vector<at::Tensor> expected = TrainPlain(8);
  std::vector<std::vector<NamedTensor>> saved;
  std::vector<ParameterGroup> weights = Groups();
  int step = 0;
  for (const int64_t ranks : {4, 2, 1, 4}) {
    SCOPED_TRACE(ranks);
    std::vector<std::vector<NamedTensor>> next(ranks);
    std::vector<ParameterGroup> trained;
    ASSERT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      std::unique_ptr<Optimizer> optimizer = Plain();
      if (ranks > 1) optimizer = ShardOptimizer(std::move(optimizer), communicator);
      std::vector<ParameterGroup> own = weights;
      for (ParameterGroup& group : own) {
        for (at::Tensor& parameter : group.parameters) parameter = parameter.detach().clone().set_requires_grad(true);
      }
      SSL_RETURN_IF_ERROR(optimizer->Initialize(std::move(own)));
      if (!saved.empty()) {
        SavedRanks files(static_cast<int64_t>(saved.size()), [&](int64_t rank) { return saved[rank]; });
        SSL_ASSIGN_OR_RETURN(const WalkedState walked, WalkState(*optimizer));
        SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, files.StateOf(walked, communicator));
        SSL_RETURN_IF_ERROR(RestoreState(*optimizer, state, "saved"));
      }
      SSL_RETURN_IF_ERROR(Train(*optimizer, step, 2));
      SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, CollectState(*optimizer));
      SSL_ASSIGN_OR_RETURN(next[communicator.rank()], StateOfItsOwn(std::move(state), communicator));
      if (communicator.rank() == 0) trained = optimizer->groups();
      return absl::OkStatus();
    }));
    saved = std::move(next);
    weights = std::move(trained);
    step += 2;
  }
  std::vector<at::Tensor> found;
  for (const ParameterGroup& group : weights)
    found.insert(found.end(), group.parameters.begin(), group.parameters.end());
  ExpectBitwiseEqual(found, expected);
}

TEST_P(ShardedOptimizerTest, StateOfAParameterIsOnOneRank) {
  const std::unique_ptr<Optimizer> plain = Plain();
  ASSERT_OK(plain->Initialize(Groups()));
  const size_t expected = CollectState(*plain)->size();
  std::vector<std::vector<std::string>> names(3);
  ASSERT_OK(ThreadWorld(3, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    const std::unique_ptr<Optimizer> optimizer = ShardOptimizer(Plain(), communicator);
    SSL_RETURN_IF_ERROR(optimizer->Initialize(Groups()));
    SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(*optimizer));
    for (const NamedTensor& entry : state) names[communicator.rank()].push_back(entry.name);
    return absl::OkStatus();
  }));
  std::map<std::string, int> seen;
  for (const std::vector<std::string>& of_rank : names) {
    for (const std::string& name : of_rank) ++seen[name];
  }
  EXPECT_EQ(seen.size(), expected);
  for (const auto& [name, count] : seen) EXPECT_EQ(count, 1) << name;
}

INSTANTIATE_TEST_SUITE_P(All, ShardedOptimizerTest, ::testing::ValuesIn(Makers()),
                         [](const auto& info) { return info.param.first; });

TEST(AssignOwnersTest, LargestFirst_ToTheRankWithLeast) {
  EXPECT_THAT(AssignOwners({1, 9, 4, 4, 1}, 2), ElementsAre(1, 0, 1, 1, 0));
  EXPECT_THAT(AssignOwners({2, 2, 2}, 2), ElementsAre(0, 1, 0));
  EXPECT_THAT(AssignOwners({3}, 4), ElementsAre(0));
  EXPECT_THAT(AssignOwners({5, 1}, 1), ElementsAre(0, 0));
}

TEST(ShardedOptimizerGroupsTest, MoreRanksThanParameters_AreRefused) {
  std::vector<absl::Status> made(8);
  ASSERT_OK(ThreadWorld(8, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    const std::unique_ptr<Optimizer> optimizer = ShardOptimizer(*MakeSgd({}), communicator);
    made[communicator.rank()] = optimizer->Initialize(Groups());
    return absl::OkStatus();
  }));
  for (const absl::Status& status : made) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("8 ranks cannot share 7 parameters: turn config.OPTIMIZER.use_zero off")));
  }
}

TEST(ShardedOptimizerGroupsTest, AllParametersAreThere_WithTheMomentumOfTheOptimizer) {
  ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    const std::unique_ptr<Optimizer> optimizer = ShardOptimizer(*MakeSgd({0.7, false, "momentum"}), communicator);
    SSL_RETURN_IF_ERROR(optimizer->Initialize(Groups()));
    EXPECT_EQ(optimizer->groups()[0].names.size(), 5u);
    EXPECT_EQ(optimizer->groups()[1].momentum, 0.7);
    EXPECT_EQ(optimizer->groups()[1].momentum_schedule, "momentum");
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
