// SPDX-License-Identifier: Apache-2.0
//
// What a configuration, or a host, can change in the loop: gradient accumulation, meters, precision, initial weights.
// Train steps: train_step_test.cc.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/method.h"
#include "ssl/core/schedule.h"
#include "ssl/core/self_supervision_task.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs `config` to its end and returns the events of one hook.
std::vector<std::string> EventsOf(const ConfigNode& config) {
  std::unique_ptr<Session> session = *MakeSession(config);
  std::vector<std::string> events;
  EXPECT_OK(session->AddHook(std::make_unique<RecordingHook>("h", HookStage::kObserve, &events)));
  EXPECT_OK(session->Train());
  return events;
}

ConfigNode OneEpoch() {
  ConfigNode config = FakeConfig("");
  config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(1));
  return config;
}

TEST(GradientAccumulationTest, EventsOfAnUpdate_FollowItsLastBatch) {
  ConfigNode config = OneEpoch();
  config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(4));

  const std::vector<std::string> events = EventsOf(config);

  // Ten batches: two updates of four, and two batches that are left out.
  const std::vector<std::string> update = {"h.OnForward@0",      "h.OnLossAndMeter@0", "h.OnForward@0",
                                           "h.OnLossAndMeter@0", "h.OnForward@0",      "h.OnLossAndMeter@0",
                                           "h.OnForward@0",      "h.OnLossAndMeter@0", "h.OnBackward@0",
                                           "h.OnUpdate@0",       "h.OnStep@1"};
  ASSERT_GE(events.size(), 2 + update.size());
  EXPECT_EQ(std::vector<std::string>(events.begin() + 2, events.begin() + 2 + update.size()), update);
  EXPECT_THAT(std::vector<std::string>(events.end() - 3, events.end()),
              ElementsAre("h.OnStep@2", "h.OnPhaseEnd@2", "h.OnEnd@2"));
}

TEST(GradientAccumulationTest, GradientIsTheMeanOverTheBatches) {
  const auto gradients = [](int64_t batches_per_update) {
    ConfigNode config = OneEpoch();
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(batches_per_update));
    // No step changes the weights: gradients of all batches belong to the same weights.
    config.SetPath("OPTIMIZER.param_schedulers.lr.name", ConfigNode::FromString("zero"));
    Registries registries = FakeRegistries();
    class Zero : public Schedule {
     public:
      double ValueAt(double where) const override { return 0.0; }
      UpdateInterval update_interval() const override { return UpdateInterval::kStep; }
    };
    EXPECT_OK(registries.schedules.Register("zero", [](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<Schedule>>(std::make_unique<Zero>());
    }));
    std::unique_ptr<Session> session = *Session::Create(config, registries, {});
    std::vector<std::string> events;
    std::vector<at::Tensor> seen;
    auto hook = std::make_unique<RecordingHook>("gradients", HookStage::kObserve, &events);
    hook->At("OnBackward", [&seen](StepContext& context) {
      seen.push_back(context.optimizer->groups()[0].parameters[0].grad().clone());
      return absl::OkStatus();
    });
    EXPECT_OK(session->AddHook(std::move(hook)));
    EXPECT_OK(session->Train());
    return seen;
  };
  const std::vector<at::Tensor> single = gradients(1);
  const std::vector<at::Tensor> pairs = gradients(2);
  ASSERT_EQ(single.size(), 10u);
  ASSERT_EQ(pairs.size(), 5u);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const at::Tensor mean = (single[2 * i] + single[2 * i + 1]) / 2;
    EXPECT_LT((pairs[i] - mean).abs().max().item<double>(), 1e-6) << i;
  }
}

TEST(GradientAccumulationTest, StopAndResume_IsBitwise) {
  const auto hash = [](const std::string& directory, int64_t stop_at) {
    ConfigNode config = FakeConfig(directory);
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(3));
    std::unique_ptr<Session> session = *MakeSession(config);
    bool more = true;
    while (more && session->state().iteration != stop_at) more = *session->Step();
    EXPECT_OK(session->Finish());
    return *HashState(session->model());
  };
  const uint32_t uninterrupted = hash(MakeTempDir("whole"), -1);
  for (int64_t stop_at = 1; stop_at < 6; ++stop_at) {
    const std::string directory = MakeTempDir("parts");
    hash(directory, stop_at);
    EXPECT_EQ(hash(directory, -1), uninterrupted) << stop_at;
  }
}

// How often each phase's end was told, over two sessions of which the first one stops at `stop_at`.
int64_t PhaseEnds(const ConfigNode& config, int64_t stop_at, bool saves_at_phase_end) {
  int64_t ends = 0;
  for (int run = 0; run < 2; ++run) {
    std::unique_ptr<Session> session = *MakeSession(config);
    std::vector<std::string> events;
    auto hook = std::make_unique<RecordingHook>("h", HookStage::kPersist, &events);
    hook->At("OnPhaseEnd", [&](StepContext& context) {
      ++ends;
      return saves_at_phase_end ? context.checkpoints->Save() : absl::OkStatus();
    });
    EXPECT_OK(session->AddHook(std::move(hook)));
    bool more = true;
    while (more && (run == 1 || session->state().iteration != stop_at)) more = *session->Step();
    if (run == 1 || !saves_at_phase_end) {
      EXPECT_OK(session->Finish());
    }
  }
  return ends;
}

TEST(PhaseEndTest, IsToldOnce_WhereverTheRunIsInterrupted) {
  for (const int64_t batches_per_update : {1, 4}) {
    ConfigNode config = FakeConfig("");
    config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(batches_per_update));
    const int64_t updates_per_epoch = 10 / batches_per_update;
    // Stopped after the last step of an epoch, before its end was told.
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(MakeTempDir("before")));
    EXPECT_EQ(PhaseEnds(config, updates_per_epoch, false), 2);
    // Killed in the first step of the second epoch: the last save was at the end of the first.
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(MakeTempDir("after")));
    EXPECT_EQ(PhaseEnds(config, updates_per_epoch + 1, true), 2);
  }
}

TEST(GradientAccumulationTest, MoreBatchesThanAnEpochHas_AreRefused) {
  ConfigNode config = FakeConfig("");
  config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(11));
  EXPECT_THAT(MakeSession(config), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("config.OPTIMIZER.grad_acc_steps is 11, expected at most 10")));
}

// "<phase>:<meter>=<value>" at each phase end.
std::vector<std::string> Reports(ConfigNode config) {
  std::unique_ptr<Session> session = *MakeSession(config);
  std::vector<std::string> events;
  std::vector<std::string> lines;
  auto hook = std::make_unique<RecordingHook>("reports", HookStage::kReport, &events);
  hook->At("OnPhaseEnd", [&lines](StepContext& context) {
    for (const MeterReport& report : context.meter_reports) {
      if (report.meter == "loss") continue;
      lines.push_back(
          absl::StrCat(context.state.training ? "train:" : "test:", report.meter, "=", report.values[0].value));
    }
    return absl::OkStatus();
  });
  EXPECT_OK(session->AddHook(std::move(hook)));
  EXPECT_OK(session->Train());
  return lines;
}

TEST(MetersTest, MeasureEveryPhaseFromItsStart) {
  ConfigNode config = FakeConfig("");
  config.SetPath("TEST_MODEL", ConfigNode::FromBool(true));
  config.SetPath("METERS.names", ConfigNode::FromStrings({"counting_meter"}));
  EXPECT_THAT(Reports(config), ElementsAre("train:counting_meter=40", "test:counting_meter=40",
                                           "train:counting_meter=40", "test:counting_meter=40"));
  config.SetPath("METERS.enable_training_meter", ConfigNode::FromBool(false));
  EXPECT_THAT(Reports(config), ElementsAre("test:counting_meter=40", "test:counting_meter=40"));
}

TEST(MetersTest, PhaseLossIsTheMeanOfItsSteps) {
  std::unique_ptr<Session> session = *MakeSession(OneEpoch());
  std::vector<std::string> events;
  double sum = 0.0;
  double reported = 0.0;
  auto steps = std::make_unique<RecordingHook>("steps", HookStage::kObserve, &events);
  steps->At("OnStep", [&sum](StepContext& context) {
    sum += context.loss.item<double>();
    return absl::OkStatus();
  });
  auto phase = std::make_unique<RecordingHook>("phase", HookStage::kReport, &events);
  phase->At("OnPhaseEnd", [&reported](StepContext& context) {
    reported = context.meter_reports.at(0).values.at(0).value;
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(steps)));
  ASSERT_OK(session->AddHook(std::move(phase)));
  ASSERT_OK(session->Train());
  EXPECT_NEAR(reported, sum / 10, 1e-6);
}

// Notes what is there when a batch starts.
class BatchStartHook : public Hook {
 public:
  explicit BatchStartHook(std::vector<std::string>* events) : events_(events) {}
  absl::string_view name() const override { return "batch_start"; }
  HookStage stage() const override { return HookStage::kTiming; }
  absl::Status OnBatchStart(StepContext& context) override {
    events_->push_back(absl::StrCat("start ", context.batch_in_update, " of ", context.batches_per_update, " at ",
                                    context.state.iteration, context.batch == nullptr ? " without batch" : ""));
    return absl::OkStatus();
  }
  absl::Status OnForward(StepContext& context) override {
    events_->push_back(absl::StrCat("forward ", context.batch_in_update));
    return absl::OkStatus();
  }

 private:
  std::vector<std::string>* events_;
};

TEST(EventsTest, EachBatch_StartsBeforeItsForwardPass) {
  ConfigNode config = OneEpoch();
  config.SetPath("OPTIMIZER.grad_acc_steps", ConfigNode::FromInt(2));
  std::unique_ptr<Session> session = *MakeSession(config);
  std::vector<std::string> events;
  ASSERT_OK(session->AddHook(std::make_unique<BatchStartHook>(&events)));
  ASSERT_OK(session->Step().status());
  EXPECT_THAT(events, ElementsAre("start 0 of 2 at 0", "forward 0", "start 1 of 2 at 0", "forward 1"));
}

TEST(PrecisionTest, Float16_ScalesTheLossAndTrains) {
  ConfigNode config = FakeConfig("");
  config.SetPath("MODEL.AMP_PARAMS.USE_AMP", ConfigNode::FromBool(true));
  config.SetPath("MODEL.AMP_PARAMS.AMP_DTYPE", ConfigNode::FromString("float16"));
  std::unique_ptr<Session> session = *MakeSession(config);
  std::vector<std::string> events;
  std::vector<double> losses;
  double largest_gradient = 0.0;
  auto hook = std::make_unique<RecordingHook>("hook", HookStage::kObserve, &events);
  hook->At("OnUpdate", [&](StepContext& context) {
    losses.push_back(context.loss.item<double>());
    const at::Tensor gradient = context.optimizer->groups()[0].parameters[0].grad();
    largest_gradient = std::max(largest_gradient, gradient.abs().max().item<double>());
    return absl::OkStatus();
  });
  ASSERT_OK(session->AddHook(std::move(hook)));
  ASSERT_OK(session->Train());
  EXPECT_LT(losses.back(), losses.front() / 2);
  EXPECT_LT(largest_gradient, 100.0) << "the scale of 65,536 is taken out";
}

// A loss whose gradients no float32 can hold, until a given step.
class OverflowingMethod : public Method {
 public:
  explicit OverflowingMethod(int64_t until) : until_(until) {}
  absl::Status ComputeLoss(StepContext& context) override {
    context.loss = context.outputs[0].pow(2).mean();
    if (context.state.iteration < until_) context.loss = context.loss + context.outputs[0].sum() * 1e38;
    return absl::OkStatus();
  }

 private:
  const int64_t until_;
};

struct OverflowingRun {
  absl::Status status;
  int64_t iteration = 0;
};

// Two epochs of ten float16 updates, of which the first `until` overflow.
OverflowingRun TrainOverflowing(int64_t until, int64_t limit, const std::string& loss_scale) {
  Registries registries = FakeRegistries();
  EXPECT_OK(registries.methods.Register("overflowing_loss", [until](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<OverflowingMethod>(until));
  }));
  ConfigNode config = FakeConfig("");
  config.SetPath("LOSS.name", ConfigNode::FromString("overflowing_loss"));
  config.SetPath("MODEL.AMP_PARAMS.USE_AMP", ConfigNode::FromBool(true));
  config.SetPath("MODEL.AMP_PARAMS.AMP_DTYPE", ConfigNode::FromString("float16"));
  config.SetPath("MODEL.AMP_PARAMS.AMP_ARGS.loss_scale", ConfigNode::FromString(loss_scale));
  config.SetPath("MODEL.AMP_PARAMS.MAX_SKIPPED_UPDATES", ConfigNode::FromInt(limit));
  std::unique_ptr<Session> session = *Session::Create(config, registries, {});
  OverflowingRun run;
  run.status = session->Train().status();
  run.iteration = session->state().iteration;
  return run;
}

TEST(SkippedUpdatesTest, TooManyInARow_EndTheRunAndSayWhatToLower) {
  for (const char* loss_scale : {"dynamic", "65536"}) {
    const OverflowingRun run = TrainOverflowing(100, 5, loss_scale);
    EXPECT_EQ(run.iteration, 4) << "the fifth update fails";
    EXPECT_EQ(run.status.code(), absl::StatusCode::kOutOfRange);
    for (const char* part : {"overflowed in 5 updates in a row", "since iteration 0", "the loss scale is",
                             "Lower the learning rate", "MAX_SKIPPED_UPDATES is 5"}) {
      EXPECT_THAT(run.status.message(), HasSubstr(part));
    }
  }
}

TEST(SkippedUpdatesTest, RunThatSkipsAllOfThem_DoesNotFinish) {
  const OverflowingRun run = TrainOverflowing(100, 1000, "dynamic");
  EXPECT_THAT(run.status, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("overflowed in 20 updates in a row")));
}

TEST(SkippedUpdatesTest, FewerThanTheLimit_AreARunThatGoesOn) {
  const OverflowingRun run = TrainOverflowing(4, 5, "dynamic");
  EXPECT_OK(run.status);
  EXPECT_EQ(run.iteration, 20);
}

}  // namespace
}  // namespace ssl
