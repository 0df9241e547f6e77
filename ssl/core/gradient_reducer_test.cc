// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/gradient_reducer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

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
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kWidth = 8;
constexpr int64_t kLayerBytes = kWidth * kWidth * 4;
// Each layer is a bucket.
constexpr GradientReducerOptions kSmallBuckets = {1, 1};

// Layers of [kWidth, kWidth], "layer0" next to the input; equal on all ranks.
struct Network {
  explicit Network(int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) {
      const at::Tensor value = (at::arange(kWidth * kWidth, at::kFloat).view({kWidth, kWidth}) * (0.1 + i)).sin();
      parameters.push_back({absl::StrCat("layer", i), value.requires_grad_(true)});
    }
  }

  // Of a batch that no other rank and step has. `layers`: those that take part.
  at::Tensor Loss(int64_t rank, int64_t step, std::vector<bool> layers = {}) const {
    at::Tensor value = (at::arange(4 * kWidth, at::kFloat).view({4, kWidth}) * (rank + 1) + step * 0.3).cos();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (layers.empty() || layers[i]) value = value.matmul(parameters[i].value).tanh();
    }
    return value.pow(2).mean();
  }

  std::vector<at::Tensor> Gradients() const {
    std::vector<at::Tensor> gradients;
    for (const NamedParameter& parameter : parameters) {
      const at::Tensor& gradient = parameter.value.grad();
      gradients.push_back(gradient.defined() ? gradient.clone() : at::Tensor());
    }
    return gradients;
  }

  void DropGradients() {
    for (NamedParameter& parameter : parameters) parameter.value.mutable_grad().reset();
  }

  std::vector<NamedParameter> parameters;
};

// Of the mean of all ranks' losses.
std::vector<at::Tensor> ExpectedGradients(int64_t layers, int64_t ranks, int64_t step) {
  Network network(layers);
  for (int64_t rank = 0; rank < ranks; ++rank) (network.Loss(rank, step) / ranks).backward();
  return network.Gradients();
}

void ExpectClose(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(actual[i].allclose(expected[i], /*rtol=*/1e-5, /*atol=*/1e-7)) << i;
  }
}

absl::Status InThreads(int64_t ranks, const std::function<absl::Status(Communicator&)>& rank_main) {
  return ThreadWorld(ranks, absl::Seconds(30)).Run(rank_main);
}

absl::Status ReduceInBackward(GradientReducer& reducer, const at::Tensor& loss) {
  SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
  loss.backward();
  return reducer.Reduce();
}

// Three updates, with buckets of all sizes, started within backward and after it.
absl::Status ReduceSteps(Communicator& communicator) {
  for (const int64_t bytes : {int64_t{1}, 2 * kLayerBytes, 100 * kLayerBytes}) {
    Network network(5);
    GradientReducer reducer(network.parameters, {bytes, 1}, communicator);
    for (int64_t step = 0; step < 3; ++step) {
      const at::Tensor loss = network.Loss(communicator.rank(), step);
      if (step == 1) {
        loss.backward();
        SSL_RETURN_IF_ERROR(reducer.Reduce());
      } else {
        SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, loss));
      }
      ExpectClose(network.Gradients(), ExpectedGradients(5, communicator.size(), step));
      network.DropGradients();
    }
  }
  return absl::OkStatus();
}

TEST(GradientReducer, Gradients_AreTheirMeanOverThreads) { EXPECT_OK(InThreads(3, &ReduceSteps)); }

TEST(GradientReducer, Gradients_AreTheirMeanOverProcesses) { EXPECT_OK(ProcessWorld(3).Run(&ReduceSteps)); }

TEST(GradientReducer, Buckets_CloseAtTheirSize) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    // Layers for each size, and the reductions that ten layers take: one for the first bucket, then as many as needed.
    for (const auto& [bytes, reductions] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 10}, {3 * kLayerBytes, 4}, {1000 * kLayerBytes, 2}}) {
      CollectiveCounts counts;
      CountingCommunicator counted(communicator, &counts);
      Network network(10);
      GradientReducer reducer(network.parameters, {bytes, 1}, counted);
      EXPECT_THAT(counts.Take(), ElementsAre()) << "nothing is exchanged by making it";
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), 0)));
      EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", reductions), Pair("duplicate", 1)));
      network.DropGradients();
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), 1)));
      EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", reductions)));
    }
    return absl::OkStatus();
  }));
}

// When the gradient of the first layer comes, the reductions of all others have been started.
TEST(GradientReducer, Reductions_StartWithinBackward) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    CollectiveCounts counts;
    CountingCommunicator counted(communicator, &counts);
    Network network(4);
    GradientReducer reducer(network.parameters, kSmallBuckets, counted);
    std::map<std::string, int64_t> before_first_layer;
    network.parameters[0].value.register_hook([&](const at::Tensor& gradient) { before_first_layer = counts.Take(); });
    SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), 0)));
    EXPECT_EQ(before_first_layer["all-reduce"], 3);
    EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", 1)));

    network.DropGradients();
    network.Loss(communicator.rank(), 1).backward();
    EXPECT_EQ(before_first_layer["all-reduce"], 0) << "not asked to start";
    return reducer.Reduce();
  }));
}

TEST(GradientReducer, GradientsOfSeveralBatches_AreReducedOnceTheyAreComplete) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    Network network(3);
    GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
    for (int64_t update = 0; update < 2; ++update) {
      (network.Loss(rank, 0) / 2).backward();
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(rank, 1) / 2));
      std::vector<at::Tensor> expected = ExpectedGradients(3, 2, 0);
      const std::vector<at::Tensor> second = ExpectedGradients(3, 2, 1);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] = (expected[i] + second[i]) / 2;
      ExpectClose(network.Gradients(), expected);
      network.DropGradients();
    }
    return absl::OkStatus();
  }));
}

// Also in the first and the last bucket, within backward and after it.
TEST(GradientReducer, GradientThatSomeRanksLack_IsZeroThereAndNamed) {
  CapturedLog log;
  EXPECT_OK(InThreads(3, [](Communicator& communicator) -> absl::Status {
    for (const size_t missing : {0, 1, 3}) {
      for (const bool in_backward : {true, false}) {
        Network network(4);
        GradientReducer reducer(network.parameters, {2 * kLayerBytes, 1}, communicator);
        std::vector<bool> layers(4, true);
        if (communicator.rank() == 1) layers[missing] = false;
        const at::Tensor loss = network.Loss(communicator.rank(), 0, layers);
        if (in_backward) SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
        loss.backward();
        EXPECT_EQ(network.parameters[missing].value.grad().defined(), communicator.rank() != 1);
        SSL_RETURN_IF_ERROR(reducer.Reduce());

        Network expected(4);
        for (int64_t rank = 0; rank < 3; ++rank) {
          std::vector<bool> of_rank(4, true);
          if (rank == 1) of_rank[missing] = false;
          (expected.Loss(rank, 0, of_rank) / 3).backward();
        }
        ExpectClose(network.Gradients(), expected.Gradients());
      }
    }
    return absl::OkStatus();
  }));
  ASSERT_EQ(log.warnings.size(), 6u) << log.Text();
  EXPECT_THAT(log.warnings[0], AllOf(HasSubstr("undefined on some ranks"), HasSubstr("layer0")));
  EXPECT_THAT(log.warnings[5], HasSubstr("layer3"));
}

TEST(GradientReducer, GradientThatAllRanksLack_StaysUndefined) {
  CapturedLog log;
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    Network network(3);
    network.parameters[2].value.requires_grad_(false);
    GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
    for (const bool takes_part : {false, true, false}) {
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), 0, {true, takes_part, true})));
      EXPECT_TRUE(network.parameters[0].value.grad().defined());
      EXPECT_EQ(network.parameters[1].value.grad().defined(), takes_part);
      EXPECT_FALSE(network.parameters[2].value.grad().defined());
      network.DropGradients();
    }
    return absl::OkStatus();
  }));
  EXPECT_THAT(log.warnings, ElementsAre());
}

// A run that resumes begins with a reducer that is new: its sums have to be those of one that has worked for a while,
// to the bit. More than two ranks, so that the order of a sum matters.
TEST(GradientReducer, NewReducer_AddsInTheSameOrder) {
  EXPECT_OK(ProcessWorld(4).Run([](Communicator& communicator) -> absl::Status {
    std::vector<std::vector<at::Tensor>> last;
    for (const int64_t first_step : {0, 3}) {
      Network network(6);
      GradientReducer reducer(network.parameters, {2 * kLayerBytes, kLayerBytes}, communicator);
      for (int64_t step = first_step; step < 4; ++step) {
        network.DropGradients();
        SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), step)));
      }
      last.push_back(network.Gradients());
    }
    for (size_t i = 0; i < last[0].size(); ++i) {
      EXPECT_TRUE(at::equal(last[0][i], last[1][i])) << i;
      SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(last[0][i]));
      EXPECT_TRUE(at::equal(all, last[0][i].expand_as(all))) << "equal on all ranks, " << i;
    }
    return absl::OkStatus();
  }));
}

TEST(GradientReducer, Gradients_AreViewsOfTheSameMemoryInTheParametersLayout) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    at::Tensor image_weight = at::full({4, 3, 2, 2}, 0.5, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
    at::Tensor part = at::full({6, 4}, 0.25, at::kFloat).slice(1, 0, 3);  // with gaps
    const std::vector<NamedParameter> parameters = {{"images", image_weight.requires_grad_(true)},
                                                    {"part", part.requires_grad_(true)}};
    GradientReducer reducer(parameters, {}, communicator);
    const void* places[2] = {};
    for (int64_t step = 0; step < 3; ++step) {
      const at::Tensor factors = at::arange(48, at::kFloat).view({4, 3, 2, 2}) * (communicator.rank() + 1 + step);
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, (image_weight * factors).sum() + part.sum() * 3));
      EXPECT_TRUE(at::equal(image_weight.grad(), at::arange(48, at::kFloat).view({4, 3, 2, 2}) * (1.5 + step)));
      EXPECT_TRUE(at::equal(part.grad(), at::full({6, 3}, 3, at::kFloat)));
      EXPECT_EQ(image_weight.grad().strides(), image_weight.strides());
      if (step == 0) {
        places[0] = image_weight.grad().const_data_ptr();
        places[1] = part.grad().const_data_ptr();
      }
      EXPECT_EQ(image_weight.grad().const_data_ptr(), places[0]);
      EXPECT_EQ(part.grad().const_data_ptr(), places[1]);
      // Dropped, or set to zero where they are: both are a new beginning.
      if (step == 0) image_weight.mutable_grad().reset();
      if (step == 1) image_weight.grad().zero_();
      part.mutable_grad().reset();
    }
    return absl::OkStatus();
  }));
}

TEST(GradientReducer, ParametersOfSeveralTypes_ShareNoBucket) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    CollectiveCounts counts;
    CountingCommunicator counted(communicator, &counts);
    at::Tensor single = at::full({5}, 1, at::kFloat).requires_grad_(true);
    at::Tensor twice = at::full({3}, 1, at::kDouble).requires_grad_(true);
    at::Tensor empty = at::zeros({0}, at::kDouble).requires_grad_(true);
    GradientReducer reducer({{"single", single}, {"twice", twice}, {"empty", empty}}, {}, counted);
    const double factor = communicator.rank() + 1.0;
    SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, single.sum() * factor + (twice.sum() + empty.sum()) * factor));
    EXPECT_TRUE(at::equal(single.grad(), at::full({5}, 1.5, at::kFloat)));
    EXPECT_TRUE(at::equal(twice.grad(), at::full({3}, 1.5, at::kDouble)));
    EXPECT_EQ(empty.grad().numel(), 0);
    EXPECT_EQ(counts.Take()["all-reduce"], 2);
    return absl::OkStatus();
  }));
}

TEST(GradientReducer, WorldOfOne_LeavesGradientsAlone) {
  const std::unique_ptr<Communicator> one = MakeLocalCommunicator();
  CollectiveCounts counts;
  CountingCommunicator communicator(*one, &counts);
  Network network(2);
  GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
  ASSERT_OK(reducer.StartWithBackward());
  network.Loss(0, 0).backward();
  const void* place = network.parameters[0].value.grad().const_data_ptr();
  ASSERT_OK(reducer.Reduce());
  EXPECT_EQ(network.parameters[0].value.grad().const_data_ptr(), place);
  EXPECT_THAT(counts.Take(), ElementsAre());
}

TEST(GradientReducer, NoParameters_IsFine) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    GradientReducer reducer({}, {}, communicator);
    SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
    return reducer.Reduce();
  }));
}

// Runs a backward pass of its own for the parameter, within the outer one.
struct InnerBackward : public torch::autograd::Function<InnerBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& value,
                            const at::Tensor& parameter) {
    context->save_for_backward({parameter});
    return value.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor parameter = context->get_saved_variables()[0];
    const at::AutoGradMode with_gradients(true);
    (parameter * 2).sum().backward();
    return {gradients[0], at::Tensor()};
  }
};

TEST(GradientReducer, GradientThatComesTwice_IsNamedUnlessReducedAfterBackward) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    Network network(2);
    const auto loss = [&] {
      // Behind the last layer, so that its inner pass comes before that layer's own gradient.
      const at::Tensor value = network.Loss(communicator.rank(), 0);
      return InnerBackward::apply(value, network.parameters[1].value);
    };
    GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
    loss().backward();
    EXPECT_OK(reducer.Reduce());
    network.DropGradients();
    EXPECT_THAT(ReduceInBackward(reducer, loss()),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the gradient of layer1 came twice")));
    return absl::OkStatus();
  }));
}

TEST(GradientReducer, RankThatDoesNotReduce_IsTheErrorOfTheOthers) {
  const absl::Status status = ThreadWorld(2, absl::Seconds(60)).Run([](Communicator& communicator) {
    Network network(3);
    GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
    if (communicator.rank() == 1) return reducer.StartWithBackward();
    return ReduceInBackward(reducer, network.Loss(0, 1));
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("waits in all-reduce for one that left")));
}

// The hooks of one that is gone do nothing.
TEST(GradientReducer, ParametersOutliveIt) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    Network network(2);
    {
      GradientReducer reducer(network.parameters, kSmallBuckets, communicator);
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, network.Loss(communicator.rank(), 0)));
    }
    network.DropGradients();
    network.Loss(communicator.rank(), 0).backward();
    GradientReducer second(network.parameters, kSmallBuckets, communicator);
    SSL_RETURN_IF_ERROR(second.Reduce());
    ExpectClose(network.Gradients(), ExpectedGradients(2, 2, 0));
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
