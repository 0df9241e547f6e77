// SPDX-License-Identifier: Apache-2.0
//
// What every optimizer of this package keeps to, whatever its formula.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/state_dict.h"
#include "ssl/optim/adam.h"
#include "ssl/optim/larc.h"
#include "ssl/optim/lars.h"
#include "ssl/optim/rmsprop.h"
#include "ssl/optim/sgd.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::TestWithParam;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Variant {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Optimizer>>()> make;
};

std::vector<Variant> Variants() {
  return {
      {"Sgd",
       [] {
         return MakeSgd({0.9, false});
       }},
      {"SgdNesterov",
       [] {
         return MakeSgd({0.9, true});
       }},
      {"SgdPlain",
       [] {
         return MakeSgd({0.0, false});
       }},
      {"SgdScheduledMomentum",
       [] {
         return MakeSgd({0.0, true, "momentum"});
       }},
      {"SgdLarc",
       [] {
         return MakeLarc({}, *MakeSgd({0.9, false}));
       }},
      {"SgdLarcClip",
       [] {
         return MakeLarc({true, 1e-8, 0.02}, *MakeSgd({0.9, true}));
       }},
      {"Lars", [] { return MakeLars({}); }},
      {"LarsWithoutBiasAndNorm",
       [] {
         return MakeLars({0.9, 0.001, true});
       }},
      {"Rmsprop", [] { return MakeRmsprop({}); }},
      {"RmspropCentered",
       [] {
         return MakeRmsprop({0.99, 1e-8, 0.0, true});
       }},
      {"Adam", [] { return MakeAdam({}); }},
      {"AdamW", [] { return MakeAdamW({}); }},
      {"AdamWAmsgrad",
       [] {
         return MakeAdamW({0.9, 0.999, 1e-8, true});
       }},
  };
}

// Reproducible values that differ from element to element and from seed to seed.
at::Tensor Values(at::IntArrayRef shape, double seed) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7 + seed).reshape(shape);
}

at::Tensor Parameter(at::IntArrayRef shape, double seed) { return Values(shape, seed).set_requires_grad(true); }

std::vector<ParameterGroup> TwoGroups() {
  ParameterGroup regularized{"regularized", {"a.weight", "b.weight"}, {}, 0.1, 0.01};
  regularized.parameters = {Parameter({2, 3, 2, 2}, 1.0), Parameter({5}, 2.0)};
  ParameterGroup unregularized{"unregularized", {"a.bias"}, {Parameter({3}, 3.0)}, 0.1, 0.0};
  return {regularized, unregularized};
}

void SetGradients(Optimizer& optimizer, double seed) {
  for (ParameterGroup& group : optimizer.groups()) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad() = Values(parameter.sizes(), seed++);
  }
}

std::vector<NamedTensor> StateOf(Optimizer& optimizer) {
  absl::StatusOr<std::vector<NamedTensor>> state = CollectState(optimizer);
  EXPECT_OK(state);
  return state.ok() ? *std::move(state) : std::vector<NamedTensor>();
}

std::vector<const void*> AddressesOf(const std::vector<NamedTensor>& state) {
  std::vector<const void*> addresses;
  for (const NamedTensor& entry : state) addresses.push_back(entry.tensor.const_data_ptr());
  return addresses;
}

class OptimizerConformance : public TestWithParam<Variant> {
 protected:
  std::unique_ptr<Optimizer> Make(std::vector<ParameterGroup> groups) {
    absl::StatusOr<std::unique_ptr<Optimizer>> optimizer = GetParam().make();
    EXPECT_OK(optimizer);
    EXPECT_OK((*optimizer)->Initialize(std::move(groups)));
    return *std::move(optimizer);
  }

  void Train(Optimizer& optimizer, int first_step, int steps) {
    for (int step = first_step; step < first_step + steps; ++step) {
      SetGradients(optimizer, 10.0 * step);
      optimizer.Step({});
    }
  }
};

// Those without are of no use to a train step that is recorded, and say so.
TEST_P(OptimizerConformance, LearningRateInATensor_IsThatOfTheNumberBitForBit) {
  const auto expected = Make(TwoGroups());
  const auto found = Make(TwoGroups());
  if (!found->is_recordable()) {
    EXPECT_THAT(GetParam().name, HasSubstr("Rmsprop"));
    return;
  }
  for (ParameterGroup& group : found->groups()) {
    group.learning_rate_tensor = at::full({}, group.learning_rate, at::kDouble);
    group.learning_rate = 7.0;  // does not count
  }
  Train(*expected, 0, 2);
  Train(*found, 0, 2);
  for (ParameterGroup& group : expected->groups()) group.learning_rate = 0.03;
  for (ParameterGroup& group : found->groups()) group.learning_rate_tensor.fill_(0.03);
  Train(*expected, 2, 2);
  Train(*found, 2, 2);
  for (size_t g = 0; g < 2; ++g) {
    for (size_t i = 0; i < expected->groups()[g].parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(found->groups()[g].parameters[i], expected->groups()[g].parameters[i]));
    }
  }
}

TEST_P(OptimizerConformance, SecondHalfFromASavedState_IsBitwiseEqual) {
  const auto straight = Make(TwoGroups());
  Train(*straight, 0, 4);
  const auto first_half = Make(TwoGroups());
  Train(*first_half, 0, 2);

  const auto second_half = Make(TwoGroups());
  for (size_t g = 0; g < 2; ++g) {
    for (size_t i = 0; i < first_half->groups()[g].parameters.size(); ++i) {
      second_half->groups()[g].parameters[i].detach().copy_(first_half->groups()[g].parameters[i].detach());
    }
  }
  ASSERT_OK(RestoreState(*second_half, StateOf(*first_half), "memory"));
  Train(*second_half, 2, 2);

  for (size_t g = 0; g < 2; ++g) {
    for (size_t i = 0; i < straight->groups()[g].parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(second_half->groups()[g].parameters[i], straight->groups()[g].parameters[i]));
    }
  }
  EXPECT_EQ(*HashState(*second_half), *HashState(*straight));
}

TEST_P(OptimizerConformance, ParameterWithoutGradient_KeepsValueAndState) {
  const auto optimizer = Make(TwoGroups());
  Train(*optimizer, 0, 1);
  SetGradients(*optimizer, 5.0);
  at::Tensor& frozen = optimizer->groups()[0].parameters[0];
  const at::Tensor before = frozen.detach().clone();
  const at::Tensor other_before = optimizer->groups()[0].parameters[1].detach().clone();
  frozen.mutable_grad().reset();
  std::vector<at::Tensor> state_before;
  for (const NamedTensor& entry : StateOf(*optimizer)) state_before.push_back(entry.tensor.clone());

  optimizer->Step({});

  EXPECT_TRUE(at::equal(frozen.detach(), before));
  EXPECT_FALSE(at::equal(optimizer->groups()[0].parameters[1].detach(), other_before));
  const std::vector<NamedTensor> state = StateOf(*optimizer);
  for (size_t i = 0; i < state.size(); ++i) {
    const bool of_frozen = state[i].name.find("a.weight") != std::string::npos;
    EXPECT_EQ(at::equal(state[i].tensor, state_before[i]), of_frozen) << state[i].name;
  }
}

// Also in the first step, of infinite gradients, and where the momentum is 0 in this step.
TEST_P(OptimizerConformance, StepOfGradientsThatOverflowed_ChangesNothing) {
  const auto straight = Make(TwoGroups());
  const auto skipping = Make(TwoGroups());
  for (int step = 0; step < 4; ++step) {
    SetGradients(*skipping, step);
    for (ParameterGroup& group : skipping->groups()) group.parameters[0].grad().flatten()[1].fill_(kInfinity);
    skipping->Step(at::ones({}));
    SetGradients(*straight, step);
    straight->Step({});
    SetGradients(*skipping, step);
    skipping->Step(at::zeros({}));
    for (size_t g = 0; g < 2; ++g) {
      for (size_t i = 0; i < straight->groups()[g].parameters.size(); ++i) {
        EXPECT_TRUE(at::equal(skipping->groups()[g].parameters[i], straight->groups()[g].parameters[i])) << step;
      }
    }
  }
  EXPECT_EQ(*HashState(*skipping), *HashState(*straight));
}

TEST_P(OptimizerConformance, NoGradientAtAll_ChangesNothing) {
  const auto optimizer = Make(TwoGroups());
  const at::Tensor before = optimizer->groups()[0].parameters[0].detach().clone();

  optimizer->Step({});

  EXPECT_TRUE(at::equal(optimizer->groups()[0].parameters[0].detach(), before));
}

TEST_P(OptimizerConformance, MemoryLayouts_DoNotChangeTheResult) {
  const auto plain = Make(TwoGroups());
  std::vector<ParameterGroup> groups = TwoGroups();
  groups[0].parameters[0] =
      groups[0].parameters[0].detach().contiguous(at::MemoryFormat::ChannelsLast).set_requires_grad(true);
  const auto channels_last = Make(groups);

  for (int step = 0; step < 3; ++step) {
    SetGradients(*plain, step);
    SetGradients(*channels_last, step);  // row-major gradients
    ASSERT_NE(channels_last->groups()[0].parameters[0].strides(), plain->groups()[0].parameters[0].grad().strides());
    plain->Step({});
    channels_last->Step({});
  }

  EXPECT_TRUE(plain->groups()[0].parameters[0].detach().allclose(channels_last->groups()[0].parameters[0].detach(),
                                                                 /*rtol=*/1e-6, /*atol=*/1e-7));
}

TEST_P(OptimizerConformance, RateAndDecay_AreReadAtEachStep) {
  const auto optimizer = Make(TwoGroups());
  for (ParameterGroup& group : optimizer->groups()) {
    group.learning_rate = 0.0;
    group.weight_decay = 0.0;
  }
  const at::Tensor before = optimizer->groups()[0].parameters[0].detach().clone();

  Train(*optimizer, 0, 1);
  EXPECT_TRUE(at::equal(optimizer->groups()[0].parameters[0].detach(), before));

  optimizer->groups()[0].learning_rate = 0.1;
  Train(*optimizer, 1, 1);
  EXPECT_FALSE(at::equal(optimizer->groups()[0].parameters[0].detach(), before));
}

TEST_P(OptimizerConformance, Gradient_IsNotKeptAlive) {
  const auto optimizer = Make(TwoGroups());
  Train(*optimizer, 0, 1);
  const at::Tensor gradient = optimizer->groups()[0].parameters[0].grad();

  optimizer->groups()[0].parameters[0].mutable_grad().reset();

  EXPECT_EQ(gradient.use_count(), 1u);
}

TEST_P(OptimizerConformance, StateAndParameters_StayWhereTheyAre) {
  const auto optimizer = Make(TwoGroups());
  Train(*optimizer, 0, 1);
  const std::vector<const void*> before = AddressesOf(StateOf(*optimizer));

  Train(*optimizer, 1, 2);

  EXPECT_EQ(AddressesOf(StateOf(*optimizer)), before);
}

TEST_P(OptimizerConformance, BadGroups_AreRefusedByName) {
  const std::unique_ptr<Optimizer> optimizer = *GetParam().make();
  const auto status_of = [&](std::vector<std::string> names, std::vector<at::Tensor> parameters) {
    ParameterGroup group;
    group.name = "regularized";
    group.names = std::move(names);
    group.parameters = std::move(parameters);
    return optimizer->Initialize({group});
  };
  const at::Tensor good = Parameter({4}, 0.0);

  EXPECT_THAT(status_of({}, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("groups are empty")));
  EXPECT_THAT(status_of({"a"}, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("group regularized has 1")));
  EXPECT_THAT(status_of({"a", "a"}, {good, good}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parameter a stands twice")));
  EXPECT_THAT(status_of({"a"}, {at::Tensor()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parameter a is undefined")));
  EXPECT_THAT(status_of({"a"}, {at::ones({2}, at::kLong)}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parameter a has the type Long")));
  EXPECT_THAT(status_of({"a"}, {at::ones({4, 4}).narrow(1, 0, 2)}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("layout with gaps")));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerConformance, ::testing::ValuesIn(Variants()),
                         [](const ::testing::TestParamInfo<Variant>& info) { return info.param.name; });

}  // namespace
}  // namespace ssl
