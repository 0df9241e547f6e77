// SPDX-License-Identifier: Apache-2.0
//
// Losses, queues and whole training steps with VISSL's numbers. The update of SGD is written out here, so that a
// difference points at MoCo.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/batch.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/methods/moco/moco_method.h"
#include "ssl/methods/moco/moco_options.h"
#include "ssl/methods/moco/testing/perceptron.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"
#include "tests/golden/rank_cases.h"

namespace ssl {
namespace {

// Views are embeddings already.
class PassingModel : public Model {
 public:
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override { return views; }
  std::vector<at::Tensor> Features(const at::Tensor&, const std::vector<FeatureRequest>&) override { return {}; }
  std::vector<NamedParameter> Parameters() override { return {{"unused", unused_, false}}; }
  void SetTraining(bool) override {}
  void VisitState(StateVisitor& visitor) override {}

 private:
  at::Tensor unused_ = at::ones({1}).requires_grad_();
};

MocoOptions OptionsOf(const golden::Case& golden_case, int64_t embedding_dim) {
  MocoOptions options;
  options.embedding_dim = embedding_dim;
  options.queue_size = golden_case.Count("queue_size");
  options.momentum = golden_case.Double("momentum", options.momentum);
  options.temperature = golden_case.Double("temperature");
  return options;
}

// A method and the context of one rank, from the case's initial queue.
class MocoRun {
 public:
  MocoRun(const golden::Case& golden_case, const MocoOptions& options, Model* model, std::unique_ptr<Model> encoder,
          Communicator& communicator)
      : method_(options, std::move(encoder), /*shuffle_batch=*/true, /*seed=*/0), context_{state_,   *model,
                                                                                           nullptr,  communicator,
                                                                                           metrics_, stop_,
                                                                                           nullptr} {
    context_.batch_size = golden_case.Count("batch");
    context_.batch = &batch_;
    status_ = Start(golden_case);
  }

  // Forward pass and loss.
  absl::Status Step(const at::Tensor& query, const at::Tensor& key) {
    SSL_RETURN_IF_ERROR(status_);
    batch_.views = {query, key};
    batch_.indices = at::arange(query.size(0));
    SSL_RETURN_IF_ERROR(method_.Forward(context_));
    SSL_RETURN_IF_ERROR(method_.ComputeLoss(context_));
    SSL_RETURN_IF_ERROR(method_.Advance(context_));
    ++state_.iteration;
    ++state_.batch_in_phase;
    return absl::OkStatus();
  }

  const at::Tensor& loss() const { return context_.loss; }
  const at::Tensor& embedding() const { return context_.outputs[0]; }

  // The method's state of that name; undefined when it has none.
  at::Tensor State(const std::string& name) {
    const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(method_);
    if (!state.ok()) return at::Tensor();
    for (const NamedTensor& entry : *state) {
      if (entry.name == name) return entry.tensor;
    }
    return at::Tensor();
  }

  int64_t queue_ptr() { return State("queue_ptr").item<int64_t>(); }

  // The keys of the last step: what entered the queue last.
  at::Tensor LastKeys(int64_t count) {
    const int64_t size = State("queue").size(0);
    return State("queue").narrow(0, (queue_ptr() + size - count) % size, count);
  }

 private:
  // VISSL keeps a key in each column.
  absl::Status Start(const golden::Case& golden_case) {
    SSL_RETURN_IF_ERROR(method_.Prepare(context_));
    State("queue").copy_(golden_case.Input("queue").t());
    return absl::OkStatus();
  }

  TrainState state_;
  MetricStore metrics_;
  StopToken stop_;
  Batch batch_;
  MocoMethod method_;
  StepContext context_;
  absl::Status status_;
};

// Compares what one rank has after a step; the outputs' names begin with `prefix`.
void CheckInfoNce(const golden::Step& step, const std::string& prefix, const at::Tensor& query, MocoRun& run) {
  for (const auto& [full_name, expected] : step.outputs) {
    if (!absl::StartsWith(full_name, prefix)) continue;
    SCOPED_TRACE(full_name);
    const std::string name(absl::StripPrefix(full_name, prefix));
    if (name == "loss") {
      EXPECT_TRUE(golden::Matches(run.loss(), expected));
    } else if (name == "grad_query") {
      EXPECT_TRUE(golden::Matches(query.grad(), expected));
    } else if (name == "queue") {
      EXPECT_TRUE(golden::Matches(run.State("queue").t(), expected));
    } else if (name == "queue_ptr") {
      EXPECT_EQ(run.queue_ptr(), expected.integer);
    } else {
      ADD_FAILURE() << "output is not known to this test";
    }
  }
}

void CheckInfoNceOfRank(const golden::Case& golden_case, const std::string& prefix, Communicator& communicator) {
  PassingModel model;
  MocoRun run(golden_case, OptionsOf(golden_case, golden_case.Count("embedding_dim")), &model,
              std::make_unique<PassingModel>(), communicator);
  for (size_t index = 0; index < golden_case.steps.size(); ++index) {
    SCOPED_TRACE(absl::StrCat("step ", index));
    const golden::Step& step = golden_case.steps[index];
    const at::Tensor query = step.Input(prefix + "query").clone().requires_grad_();
    ASSERT_OK(run.Step(query, step.Input(prefix + "key")));
    run.loss().backward();
    CheckInfoNce(step, prefix, query, run);
  }
}

void CheckInfoNceOfOneRank(const golden::Case& golden_case) {
  CheckInfoNceOfRank(golden_case, "", *MakeLocalCommunicator());
}

void LoadWeights(const golden::Case& golden_case, Perceptron* model) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : golden_case.inputs) {
    absl::string_view parameter = name;
    if (!absl::ConsumePrefix(&parameter, "model.")) continue;
    at::Tensor target = model->Get(std::string(parameter));
    ASSERT_TRUE(target.defined()) << "the network has no tensor '" << parameter << "'";
    target.copy_(value);
  }
}

// torch.optim.SGD as the generator of the numbers uses it: v <- 0.9 v + g, w <- w - lr v, with g = gradient + decay w.
// (The case's momentum is that of the key encoder.)
class ReferenceSgd {
 public:
  explicit ReferenceSgd(const golden::Case& golden_case) : case_(golden_case) {}

  void Step(Perceptron* model) {
    const at::NoGradGuard no_grad;
    for (const NamedParameter& parameter : model->Parameters()) {
      at::Tensor weight = parameter.value;
      const at::Tensor gradient = weight.grad() + weight * case_.Double("weight_decay");
      at::Tensor& velocity = velocities_[parameter.name];
      velocity = velocity.defined() ? velocity * 0.9 + gradient : gradient;
      weight.sub_(velocity * case_.Double("lr"));
    }
  }

 private:
  const golden::Case& case_;
  std::map<std::string, at::Tensor> velocities_;
};

void CheckTrainOutput(const std::string& name, const golden::Output& expected, const Perceptron& model,
                      const std::map<std::string, at::Tensor>& gradients, MocoRun& run) {
  SCOPED_TRACE(name);
  if (name == "loss") {
    EXPECT_TRUE(golden::Matches(run.loss(), expected));
  } else if (name == "query") {
    EXPECT_TRUE(golden::Matches(run.embedding(), expected));
  } else if (name == "key") {
    EXPECT_TRUE(golden::Matches(run.LastKeys(expected.tensor.size(0)), expected));
  } else if (absl::StartsWith(name, "grad_")) {
    const auto gradient = gradients.find(name.substr(5));
    ASSERT_NE(gradient, gradients.end());
    EXPECT_TRUE(golden::Matches(gradient->second, expected));
  } else if (name == "queue") {
    EXPECT_TRUE(golden::Matches(run.State("queue").t(), expected));
  } else if (name == "queue_ptr") {
    EXPECT_EQ(run.queue_ptr(), expected.integer);
  } else if (absl::StartsWith(name, "model.")) {
    EXPECT_TRUE(golden::Matches(model.Get(name.substr(6)), expected));
  } else if (absl::StartsWith(name, "key_model.")) {
    EXPECT_TRUE(golden::Matches(run.State(absl::StrCat("encoder/", name.substr(10))), expected));
  } else {
    ADD_FAILURE() << "output is not known to this test";
  }
}

void CheckTraining(const golden::Case& golden_case) {
  const std::vector<int64_t> dims = golden_case.Ints("dims");
  ASSERT_GE(dims.size(), 2u);
  const bool use_batch_norm = golden_case.Flag("use_bn");
  Perceptron model(dims, use_batch_norm, /*seed=*/0);
  LoadWeights(golden_case, &model);
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  MocoRun run(golden_case, OptionsOf(golden_case, dims.back()), &model,
              std::make_unique<Perceptron>(dims, use_batch_norm, /*seed=*/1), *communicator);
  ReferenceSgd sgd(golden_case);
  for (size_t index = 0; index < golden_case.steps.size(); ++index) {
    SCOPED_TRACE(absl::StrCat("step ", index));
    const golden::Step& step = golden_case.steps[index];
    ASSERT_OK(run.Step(step.Input("x_query"), step.Input("x_key")));
    for (NamedParameter& parameter : model.Parameters()) parameter.value.mutable_grad() = at::Tensor();
    run.loss().backward();
    std::map<std::string, at::Tensor> gradients;
    for (const NamedParameter& parameter : model.Parameters()) {
      gradients.emplace(parameter.name, parameter.value.grad().clone());
    }
    sgd.Step(&model);
    for (const auto& [name, expected] : step.outputs) CheckTrainOutput(name, expected, model, gradients, run);
  }
}

TEST(MocoGolden, LossesQueuesAndStepsAreVissls) {
  golden::RunCategory("moco", {{"moco_infonce", &CheckInfoNceOfOneRank}, {"moco_train", &CheckTraining}});
}

TEST(MocoGolden, LossesAndQueuesOfSeveralRanksAreVissls) {
  golden::RunAsThreads({{"moco_infonce", &CheckInfoNceOfRank}});
}

TEST(MocoGolden, LossesAndQueuesOfTwoProcessesAreVissls) {
  golden::RunAsProcesses({{"moco_infonce", &CheckInfoNceOfRank}});
}

}  // namespace
}  // namespace ssl
