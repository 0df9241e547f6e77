// SPDX-License-Identifier: Apache-2.0
//
// Train steps of a host's own, made of the verbs. That such a step keeps what the methods of this library remember is
// tested in tests/reliability/resume/repeated_pass_test.cc.
#include "ssl/core/step_verbs.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/method.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/core/train_step.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using StepFunction = std::function<absl::Status(SelfSupervisionTask&, HookList&, StepContext&)>;

class OwnStep : public TrainStep {
 public:
  explicit OwnStep(StepFunction train) : train_(std::move(train)) {}
  // train: what is done with each batch.
  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches,
                     StepContext& context) override {
    for (int64_t batch = 0; batch < context.batches_per_update; ++batch) {
      SSL_RETURN_IF_ERROR(batches.Next());
      SSL_RETURN_IF_ERROR(train_(task, hooks, context));
      SSL_RETURN_IF_ERROR(batches.Finish());
    }
    return absl::OkStatus();
  }
  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override {
    return ForwardAndLoss(task, hooks, context);
  }

 private:
  const StepFunction train_;
};

// Counts what the step and the trainer ask of it. Outlived by the counts.
struct MethodCalls {
  int forward = 0;
  int loss = 0;
  int advance = 0;
};

class CountingMethod : public Method {
 public:
  explicit CountingMethod(MethodCalls* calls) : calls_(calls) {}
  absl::Status Forward(StepContext& context) override {
    ++calls_->forward;
    return Method::Forward(context);
  }
  absl::Status ComputeLoss(StepContext& context) override {
    ++calls_->loss;
    context.loss = context.outputs[0].pow(2).mean();
    return absl::OkStatus();
  }
  absl::Status Advance(StepContext& context) override {
    ++calls_->advance;
    return absl::OkStatus();
  }

 private:
  MethodCalls* calls_;
};

struct RunOptionsOfTest {
  int64_t batches_per_update = 1;
  std::string format = {};  // of AMP_DTYPE; "" is float32
  Communicator* communicator = nullptr;
  bool tests = false;  // a test phase follows
};

// An epoch of ten batches with `step` as its train step.
struct OwnRun {
  explicit OwnRun(StepFunction step, const RunOptionsOfTest& test = {}) {
    Registries registries;
    EXPECT_OK(RegisterFakes(&registries));
    EXPECT_OK(registries.train_steps.Register("own_step", [step](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<TrainStep>>(std::make_unique<OwnStep>(step));
    }));
    EXPECT_OK(registries.methods.Register("counting_loss", [this](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<CountingMethod>(&calls));
    }));
    ConfigNode config = FakeConfig("");
    config.SetPath("TEST_MODEL", ConfigNode::FromBool(test.tests));
    config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(1));
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(test.batches_per_update));
    config.SetPath("LOSS.name", ConfigNode::FromString("counting_loss"));
    config.SetPath("TRAINER.TRAIN_STEP_NAME", ConfigNode::FromString("own_step"));
    config.SetPath("MODEL.AMP_PARAMS.USE_AMP", ConfigNode::FromBool(!test.format.empty()));
    config.SetPath("MODEL.AMP_PARAMS.AMP_DTYPE", ConfigNode::FromString(test.format));
    SessionOptions options;
    options.communicator = test.communicator;
    absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(config, registries, std::move(options));
    EXPECT_OK(made);
    if (made.ok()) session = *std::move(made);
  }

  // Trains, and notes the events of one hook without their iterations.
  absl::Status Train() {
    EXPECT_OK(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kObserve, &events)));
    return session->Train().status();
  }

  int64_t Count(const std::string& event) const {
    int64_t count = 0;
    for (const std::string& name : events) count += name.substr(0, name.find('@')) == "h." + event ? 1 : 0;
    return count;
  }

  MethodCalls calls;
  std::vector<std::string> events;
  std::unique_ptr<Session> session;
};

absl::Status AllVerbs(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
  SSL_RETURN_IF_ERROR(Backward(task, context));
  if (!EndsUpdate(context)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
  SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
  return Update(task, hooks, context);
}

absl::Status TwoPasses(SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
  SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
  SSL_RETURN_IF_ERROR(RepeatForwardAndLoss(task, context));
  SSL_RETURN_IF_ERROR(Backward(task, context));
  if (!EndsUpdate(context)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
  SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
  return Update(task, hooks, context);
}

TEST(StepVerbsTest, SecondPass_HasNoEventsAndIsNotRemembered) {
  OwnRun run(&TwoPasses, {2});
  ASSERT_OK(run.Train());
  EXPECT_EQ(run.calls.forward, 20);
  EXPECT_EQ(run.calls.loss, 20);
  EXPECT_EQ(run.calls.advance, 10) << "once for each batch";
  EXPECT_EQ(run.Count("OnForward"), 10);
  EXPECT_EQ(run.Count("OnLossAndMeter"), 10);
  EXPECT_EQ(run.Count("OnBackward"), 5);
  EXPECT_EQ(run.Count("OnUpdate"), 5);
  EXPECT_EQ(run.Count("OnStep"), 5);
  EXPECT_EQ(run.session->state().samples_seen, 40);
}

TEST(StepVerbsTest, BatchesOfTestPhases_AreNotRemembered) {
  OwnRun run(&AllVerbs, {1, "", nullptr, /*tests=*/true});
  ASSERT_OK(run.Train());
  EXPECT_EQ(run.calls.forward, 20);
  EXPECT_EQ(run.calls.advance, 10);
}

TEST(StepVerbsTest, Gradients_AreThoseOfTheUpdateAlone) {
  std::vector<bool> defined;
  std::vector<bool> last;
  OwnRun run(
      [&](SelfSupervisionTask& task, HookList& hooks, StepContext& context) {
        defined.push_back(task.optimizer().groups()[0].parameters[0].grad().defined());
        last.push_back(EndsUpdate(context));
        return AllVerbs(task, hooks, context);
      },
      {5});
  ASSERT_OK(run.Train());
  EXPECT_THAT(defined, ElementsAre(false, true, true, true, true, false, true, true, true, true));
  EXPECT_THAT(last, ElementsAre(false, false, false, false, true, false, false, false, false, true));
}

TEST(StepVerbsTest, Backward_AddsToWhatIsThere) {
  std::vector<double> ratios;
  OwnRun run([&](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
    SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
    SSL_RETURN_IF_ERROR(Backward(task, context));
    const at::Tensor& parameter = task.optimizer().groups()[0].parameters[0];
    const double once = parameter.grad().norm().item<double>();
    EXPECT_FALSE(context.loss.requires_grad()) << "the graph is gone";
    task.model().SetTraining(false);  // without noise, so that the second pass is the first
    SSL_RETURN_IF_ERROR(RepeatForwardAndLoss(task, context));
    SSL_RETURN_IF_ERROR(Backward(task, context));
    ratios.push_back(parameter.grad().norm().item<double>() / once);
    return Update(task, hooks, context);
  });
  ASSERT_OK(run.Train());
  for (const double ratio : ratios) EXPECT_NEAR(ratio, 2.0, 0.1);
}

TEST(StepVerbsTest, ReduceGradients_MakesThemEqualOnAllRanks) {
  std::vector<std::vector<at::Tensor>> before(2), after(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    OwnRun run(
        [&, rank](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
          SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
          SSL_RETURN_IF_ERROR(Backward(task, context));
          const at::Tensor& parameter = task.optimizer().groups()[0].parameters[0];
          const at::Tensor own = parameter.grad();
          before[rank].push_back(own.clone());
          SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
          EXPECT_TRUE(at::equal(own, before[rank].back())) << "what was taken before stays this rank's";
          after[rank].push_back(parameter.grad().clone());
          return Update(task, hooks, context);
        },
        {1, "", &communicator});
    return run.Train();
  }));
  ASSERT_EQ(before[0].size(), 5u);
  for (size_t i = 0; i < before[0].size(); ++i) {
    EXPECT_FALSE(at::equal(before[0][i], before[1][i])) << "each rank has its own batch";
    EXPECT_TRUE(at::equal(after[0][i], after[1][i]));
    EXPECT_TRUE(at::equal(after[0][i], before[0][i].add(before[1][i]).div(2)));
  }
}

// Of which the weights are the judge: with and without overlap, for one batch and several.
TEST(StepVerbsTest, BackwardAndReduceGradients_IsOneAfterTheOther) {
  for (const int64_t batches_per_update : {1, 2}) {
    std::vector<at::Tensor> weights(4);
    ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
      for (const bool at_once : {false, true}) {
        OwnRun run(
            [at_once](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
              // Nothing random: ranks that are threads share one generator.
              task.model().SetTraining(false);
              if (context.state.iteration == 0 && context.batch_in_update == 0) {
                task.model().Parameters()[0].value.detach().fill_(0.1);
              }
              if (!at_once) return AllVerbs(task, hooks, context);
              SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
              SSL_RETURN_IF_ERROR(BackwardAndReduceGradients(task, context));
              return EndsUpdate(context) ? Update(task, hooks, context) : absl::OkStatus();
            },
            {batches_per_update, "", &communicator});
        SSL_RETURN_IF_ERROR(run.Train());
        weights[communicator.rank() * 2 + at_once] = run.session->model().Parameters()[0].value.detach().clone();
      }
      return absl::OkStatus();
    }));
    for (int i = 1; i < 4; ++i) EXPECT_TRUE(at::equal(weights[0], weights[i])) << i;
  }
}

// With a reduction for each gradient that a rank has, ranks would wait for each other, or mix them up.
TEST(StepVerbsTest, RankWithoutAGradient_TakesPart) {
  std::vector<at::Tensor> reduced(2), own(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    OwnRun run(
        [&, rank](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
          SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
          SSL_RETURN_IF_ERROR(Backward(task, context));
          at::Tensor parameter = task.optimizer().groups()[0].parameters[0];
          if (rank == 1) parameter.mutable_grad().reset();
          if (rank == 0) own[0] = parameter.grad().clone();
          SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
          reduced[rank] = parameter.grad().clone();
          return Update(task, hooks, context);
        },
        {1, "", &communicator});
    return run.Train();
  }));
  EXPECT_TRUE(at::equal(reduced[0], own[0].div(2)));
  EXPECT_TRUE(at::equal(reduced[1], reduced[0]));
}

// One rank's overflow is that of all: without a word between the ranks, none of them updates.
TEST(StepVerbsTest, OverflowOfOneRank_SkipsTheUpdateOfAll) {
  std::vector<std::vector<bool>> skips(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) -> absl::Status {
    const int64_t rank = communicator.rank();
    OwnRun run(
        [&, rank](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
          SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
          SSL_RETURN_IF_ERROR(Backward(task, context));
          at::Tensor parameter = task.optimizer().groups()[0].parameters[0];
          parameter.mutable_grad() = parameter.detach().clone();  // the first scales are too large for any real one
          if (rank == 1 && context.state.iteration == 3) parameter.grad()[0][0].fill_(-kInfinity);
          SSL_RETURN_IF_ERROR(ReduceGradients(task, context));
          SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
          skips[rank].push_back(SkipsUpdate(context.found_inf));
          return Update(task, hooks, context);
        },
        {1, "float16", &communicator});
    return run.Train();
  }));
  EXPECT_THAT(skips, Each(ElementsAre(false, false, false, true, false)));
}

// A step may leave the loss scale out of some updates.
TEST(StepVerbsTest, OverflowOfAnUpdate_IsNoneOfTheNext) {
  std::vector<bool> moved;
  std::vector<double> scales;
  OwnRun run(
      [&](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
        SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
        at::Tensor parameter = task.optimizer().groups()[0].parameters[0];
        const at::Tensor weight = parameter.detach().clone();
        const bool overflows = context.state.iteration == 3;
        parameter.mutable_grad() = at::full_like(parameter, overflows ? kInfinity : 1.0F);
        if (overflows) SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
        SSL_RETURN_IF_ERROR(Update(task, hooks, context));
        moved.push_back(!at::equal(weight, parameter));
        scales.push_back(task.grad_scaler()->scale());
        return absl::OkStatus();
      },
      {1, "float16"});
  ASSERT_OK(run.Train());
  EXPECT_EQ(scales.back(), scales.front() / 2) << "lowered once";
  EXPECT_THAT(moved, ElementsAre(true, true, true, false, true, true, true, true, true, true));
}

TEST(StepVerbsTest, NumberFormat_IsTheRuns) {
  for (const auto& [format, type] : std::vector<std::pair<std::string, at::ScalarType>>{
           {"", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}}) {
    std::vector<at::ScalarType> types;
    OwnRun run(
        [&types](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
          SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
          types.push_back(context.outputs[0].scalar_type());
          SSL_RETURN_IF_ERROR(RepeatForwardAndLoss(task, context));
          types.push_back(context.outputs[0].scalar_type());
          SSL_RETURN_IF_ERROR(Backward(task, context));
          SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
          EXPECT_EQ(context.found_inf.defined(), task.grad_scaler() != nullptr);
          return Update(task, hooks, context);
        },
        {1, format});
    ASSERT_OK(run.Train());
    EXPECT_THAT(types, Each(type)) << format;
  }
}

TEST(StepVerbsTest, OverflowingUpdate_IsSkippedAndLowersTheScale) {
  std::vector<bool> skips;
  std::vector<double> scales;
  std::vector<bool> moved;
  OwnRun run(
      [&](SelfSupervisionTask& task, HookList& hooks, StepContext& context) -> absl::Status {
        SSL_RETURN_IF_ERROR(ForwardAndLoss(task, hooks, context));
        SSL_RETURN_IF_ERROR(Backward(task, context));
        const at::Tensor parameter = task.optimizer().groups()[0].parameters[0];
        if (context.state.iteration == 6) parameter.grad().mul_(std::numeric_limits<float>::infinity());
        SSL_RETURN_IF_ERROR(UnscaleGradients(task, context));
        skips.push_back(SkipsUpdate(context.found_inf));
        EXPECT_TRUE(context.found_inf.defined());
        const at::Tensor weight = parameter.detach().clone();
        SSL_RETURN_IF_ERROR(Update(task, hooks, context));
        moved.push_back(!at::equal(weight, parameter));
        scales.push_back(task.grad_scaler()->scale());
        return absl::OkStatus();
      },
      {1, "float16"});
  ASSERT_OK(run.Train());
  // The first scale is too large for this loss, as it is for most.
  EXPECT_FALSE(skips[5]);
  EXPECT_TRUE(skips[6]);
  EXPECT_FALSE(skips[7]);
  for (size_t i = 0; i < skips.size(); ++i) EXPECT_EQ(moved[i], !skips[i]) << i;
  EXPECT_EQ(scales[6], scales[5] / 2);
}

}  // namespace
}  // namespace ssl
