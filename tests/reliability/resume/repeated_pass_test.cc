// SPDX-License-Identifier: Apache-2.0
//
// A train step of a host's own that goes through each batch twice is, where the second pass finds the same weights, the
// standard step to the bit: number format, accumulation, loss scale, reduction and hooks come with the verbs, and
// queues and counters move once for each batch. Only running statistics of batch normalisation see both passes.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/step_verbs.h"
#include "ssl/core/train_step.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/safetensors.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "tests/reliability/resume/random_images.h"

namespace ssl {
namespace {

constexpr int64_t kViews = 2;

// Sharpness-aware minimisation with a radius of zero: the gradients of the first pass are dropped.
class TwoPassStep : public TrainStep {
 public:
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    for (int64_t batch = 0; batch < context.batches_per_update; ++batch) {
      SSL_RETURN_IF_ERROR(batches.Next());
      SSL_RETURN_IF_ERROR(TrainOn(task, hooks, context));
      SSL_RETURN_IF_ERROR(batches.Finish());
    }
    return absl::OkStatus();
  }

  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override {
    return ForwardAndLoss(task, hooks, context);
  }

 private:
  static absl::Status TrainOn(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
    SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
    const std::vector<at::Tensor> of_earlier_batches = ExchangeGradients(task, {});
    SSL_RETURN_IF_ERROR(Backward(task, context));
    ExchangeGradients(task, of_earlier_batches);
    SSL_RETURN_IF_ERROR(RepeatForwardAndLoss(task, context));
    SSL_RETURN_IF_ERROR(Backward(task, context));
    if (!EndsUpdate(context)) return absl::OkStatus();
    SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
    SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
    return Update(task, hooks, context);
  }

  // Gives the parameters these gradients, or none, and returns those that they had.
  static std::vector<at::Tensor> ExchangeGradients(SelfSupervisionTask& task, std::vector<at::Tensor> gradients) {
    std::vector<at::Tensor> before;
    for (ParameterGroup& group : task.optimizer().groups()) {
      for (at::Tensor& parameter : group.parameters) {
        at::Tensor gradient = gradients.empty() ? at::Tensor() : gradients[before.size()];
        before.push_back(std::exchange(parameter.mutable_grad(), std::move(gradient)));
      }
    }
    return before;
  }
};

// Between the passes the weights lie elsewhere; they come back before the update.
class ClimbingStep : public TrainStep {
 public:
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    for (int64_t batch = 0; batch < context.batches_per_update; ++batch) {
      SSL_RETURN_IF_ERROR(batches.Next());
      SSL_RETURN_IF_ERROR(TrainOn(task, hooks, context));
      SSL_RETURN_IF_ERROR(batches.Finish());
    }
    return absl::OkStatus();
  }

  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override {
    return ForwardAndLoss(task, hooks, context);
  }

 private:
  static absl::Status TrainOn(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
    SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
    Climb(task, 0.5);
    SSL_RETURN_IF_ERROR(RepeatForwardAndLoss(task, context));
    SSL_RETURN_IF_ERROR(Backward(task, context));
    Climb(task, -0.5);
    return EndsUpdate(context) ? Update(task, hooks, context) : absl::OkStatus();
  }

  static void Climb(SelfSupervisionTask& task, double by) {
    const at::NoGradGuard no_grad;
    for (ParameterGroup& group : task.optimizer().groups()) {
      for (at::Tensor& parameter : group.parameters) parameter.add_(by);
    }
  }
};

constexpr char kBase[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1000
TEST_MODEL: False
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}}
OPTIMIZER:
  name: sgd
  momentum: 0.9
  num_epochs: 2
  grad_acc_steps: 2
  param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}
)";

constexpr char kSwav[] = R"(
LOSS:
  name: swav_loss
  swav_loss: {num_crops: 2, queue: {queue_length: 16, start_iter: 6}, temp_hard_assignment_iters: 3}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [32, 16, 8], num_clusters: [5]}]]}}
)";
constexpr char kMoco[] = R"(
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 8, queue_size: 16, momentum: 0.9}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 8]}]]}}
)";

struct Format {
  const char* name;
  const char* config;
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

const Format kFormats[] = {{"Float32", "{}"},
                           {"Bfloat16", "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}}"},
                           {"Float16", "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}"}};

Registries MakeRegistries() {
  Registries registries;
  EXPECT_OK(RegisterMethods(&registries));
  EXPECT_OK(RegisterHooks(&registries));
  EXPECT_OK(registries.train_steps.Register("two_pass_step", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<TrainStep>>(std::make_unique<TwoPassStep>());
  }));
  EXPECT_OK(registries.train_steps.Register("climbing_step", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<TrainStep>>(std::make_unique<ClimbingStep>());
  }));
  return registries;
}

ConfigNode Parse(const std::string& text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> config = ParseYaml(text, "case.yaml", &warnings);
  EXPECT_OK(config);
  return config.ok() ? *config : ConfigNode();
}

using Param = std::tuple<std::string, Format, int64_t>;  // configuration of the method, format, ranks

class RepeatedPassTest : public ::testing::TestWithParam<Param> {
 protected:
  // Everything that a run with this train step saves at its end, of all ranks.
  std::vector<NamedTensor> Train(const std::string& train_step) const {
    const auto& [method, format, ranks] = GetParam();
    const std::string directory = MakeTempDir(train_step);
    ConfigNode config = Parse(kBase);
    MergeInto(&config, Parse(method));
    MergeInto(&config, Parse(format.config));
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
    config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString(train_step));
    config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(ranks));
    EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&, ranks = ranks](Communicator& communicator) -> absl::Status {
      SessionOptions options;
      options.communicator = &communicator;
      options.train_source = std::make_unique<RandomImages>(kViews, communicator.rank(), ranks);
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(config, registries_, std::move(options)));
      return session->Train().status();
    }));
    std::vector<std::string> files = {"model", "optimizer"};
    for (int64_t rank = 0; rank < ranks; ++rank) files.push_back(absl::StrCat("state_rank", rank));
    std::vector<NamedTensor> state;
    for (const std::string& file : files) {
      auto content = ReadSafetensors(absl::StrCat(directory, "/checkpoints/step_10/", file, ".safetensors"));
      EXPECT_OK(content);
      if (!content.ok()) return {};
      for (const NamedTensor& entry : content->tensors)
        state.push_back({absl::StrCat(file, "/", entry.name), entry.tensor});
    }
    return state;
  }

  const Registries registries_ = MakeRegistries();
};

// What sees both passes: statistics of layers, and averages of them.
bool IsRunningStatistic(const std::string& name) {
  return absl::EndsWith(name, "running_mean") || absl::EndsWith(name, "running_var") ||
         absl::EndsWith(name, "num_batches_tracked") || absl::EndsWith(name, "ema/buffers/averages/values");
}

TEST_P(RepeatedPassTest, IsTheStandardStep) {
  const std::vector<NamedTensor> expected = Train("standard_train_step");
  const std::vector<NamedTensor> found = Train("two_pass_step");
  ASSERT_EQ(found.size(), expected.size());
  int64_t compared = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found[i].name, expected[i].name);
    if (IsRunningStatistic(expected[i].name)) continue;
    EXPECT_TRUE(at::equal(found[i].tensor, expected[i].tensor)) << expected[i].name;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

INSTANTIATE_TEST_SUITE_P(Methods, RepeatedPassTest,
                         ::testing::Combine(::testing::Values(kSwav, kMoco), ::testing::ValuesIn(kFormats),
                                            ::testing::Values(1, 2)),
                         [](const ::testing::TestParamInfo<Param>& info) {
                           return absl::StrCat(std::get<0>(info.param) == kSwav ? "Swav" : "Moco",
                                               std::get<1>(info.param).name, "Ranks", std::get<2>(info.param));
                         });

// MoCo's key encoder starts as the model, not as what a second pass looked at.
TEST(ClimbingStepTest, KeyEncoder_StartsWithTheWeightsThatTheStepComesBackTo) {
  const std::string directory = MakeTempDir("climbing_step");
  ConfigNode config = Parse(kBase);
  MergeInto(&config, Parse(kMoco));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("climbing_step"));
  SessionOptions options;
  options.train_source = std::make_unique<RandomImages>(kViews, 0, 1);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(config, MakeRegistries(), std::move(options)));
  std::map<std::string, at::Tensor> initial;
  for (const NamedParameter& parameter : session->model().Parameters()) {
    initial[parameter.name] = parameter.value.detach().clone();
  }
  ASSERT_OK(session->Step());
  ASSERT_OK(session->Finish());

  ASSERT_OK_AND_ASSIGN(const SafetensorsContent saved,
                       ReadSafetensors(directory + "/checkpoints/step_1/state_rank0.safetensors"));
  size_t compared = 0;
  for (const NamedTensor& entry : saved.tensors) {
    for (const auto& [name, weight] : initial) {
      if (!absl::EndsWith(entry.name, "encoder/" + name)) continue;
      EXPECT_TRUE(at::allclose(entry.tensor, weight, 0, 1e-6)) << entry.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, initial.size());
}

}  // namespace
}  // namespace ssl
