// SPDX-License-Identifier: Apache-2.0
//
// A run whose updates are recorded and repeated is the run of the standard step, bit for bit: losses, checkpoints and
// what is reported. Whole sessions from a configuration; the device is the stand-in of the tests, whose recordings do
// nothing again that only the host did (docs/devices.md).
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/core/step_context.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/graph_runs.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_graph.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSteps = kStepsOfGraphRun;

constexpr char kDropout[] = "MODEL: {TRUNK: {VISION_TRANSFORMERS: {DROPOUT_RATE: 0.1, DROP_PATH_RATE: 0.3}}}";

struct MethodConfig {
  std::string name;
  std::string config;
  std::string parts = "{}";  // over it
};

void PrintTo(const MethodConfig& method, std::ostream* out) { *out << method.name; }

std::string TwoViews(const std::string& collator) {
  return absl::StrCat("DATA: {TRAIN: {COLLATE_FUNCTION: ", collator,
                      ", TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, {name: RandomResizedCrop, size: 16},"
                      "{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]}}\n");
}

constexpr char kSwav[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [16, 32, 16], use_bn: True, num_clusters: [8]}]]}}
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 32, start_iter: 2}}}
)";

// What a SwAV run has beside: each changes something that is recorded.
constexpr char kSwavHooks[] = R"(
MODEL:
  TEMP_FROZEN_PARAMS_ITER_MAP: [[heads.0.prototypes0.weight, 5]]
  GRAD_CLIP: {USE_GRAD_CLIP: True, MAX_NORM: 0.5}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True, WARMUP: 0.2, DECAY: 0.9}}
)";

std::string Simclr() {
  return TwoViews("simclr_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_bn: True, use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: simclr_info_nce_loss, simclr_info_nce_loss: {buffer_params: {embedding_dim: 16}}}
)";
}

std::vector<MethodConfig> Methods() {
  return {{"Swav", kSwav, kSwavHooks},
          {"Simclr", Simclr()},
          {"Moco", TwoViews("moco_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 16, queue_size: 48, momentum: 0.9}}
)"},
          {"BarlowTwins", TwoViews("simclr_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32, 16], use_bn: True, use_relu: True, use_bias: False}]]}}
LOSS: {name: barlow_twins_loss, barlow_twins_loss: {embedding_dim: 16}}
OPTIMIZER: {name: lars}
)"},
          {"Supervised", kSupervisedRun}};
}

void ExpectSameCheckpoint(const std::string& found, const std::string& expected, int64_t iteration = kSteps) {
  const std::vector<std::string> files = {"model.safetensors", "optimizer.safetensors", "state_rank0.safetensors"};
  ExpectEqual(Saved(found, iteration, files), Saved(expected, iteration, files));
}

class GraphTraining : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  absl::StatusOr<GraphRunOutcome> Train(std::vector<std::string> config, const std::string& device,
                                        const std::string& step) {
    GraphRun run;
    run.config = std::move(config);
    run.device = device;
    run.step = step;
    run.directory = absl::StrCat(directory_, "/", pairs_, "/", device, "_", step);
    return TrainGraphRun(std::move(run));
  }

  // Of the two steps on a device; the outcome of the one that records.
  GraphRunOutcome ExpectSameRuns(const std::vector<std::string>& config, const std::string& device = "gpu") {
    ++pairs_;
    const absl::StatusOr<GraphRunOutcome> expected = Train(config, device, "standard_train_step");
    const absl::StatusOr<GraphRunOutcome> found = Train(config, device, "graph_train_step");
    EXPECT_OK(expected);
    EXPECT_OK(found);
    if (!expected.ok() || !found.ok()) return {};
    EXPECT_EQ(found->values, expected->values);
    EXPECT_THAT(found->values, SizeIs(Ge(static_cast<size_t>(2 * kSteps))));
    const std::string directory = absl::StrCat(directory_, "/", pairs_, "/", device, "_");
    ExpectSameCheckpoint(directory + "graph_train_step", directory + "standard_train_step");
    return *found;
  }

  void ExpectRecorded(const GraphRunOutcome& outcome, int64_t least_replays) {
    EXPECT_GE(outcome.recordings, 1);
    EXPECT_GE(outcome.replays, least_replays);
    EXPECT_THAT(outcome.reads, IsEmpty());
    EXPECT_EQ(outcome.uploads, outcome.batch_uploads);
  }

  const std::string directory_ = MakeTempDir("standin_graph");
  int pairs_ = 0;  // of runs, each in directories of its own
};

class GraphTrainingOf : public GraphTraining, public testing::WithParamInterface<MethodConfig> {};

TEST_P(GraphTrainingOf, IsThatOfTheStandardStepAndReadsNothing) {
  ExpectRecorded(ExpectSameRuns({GetParam().config, GetParam().parts, kDropout}), /*least_replays=*/4);
}

TEST_P(GraphTrainingOf, InMixedPrecision_IsThatOfTheStandardStep) {
  ExpectRecorded(ExpectSameRuns({GetParam().config, GetParam().parts, kDropout,
                                 "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}}"}),
                 /*least_replays=*/4);
}

// By the first scale updates overflow until it is low enough, by the second all of them do.
TEST_P(GraphTrainingOf, WithALossScale_IsThatOfTheStandardStep) {
  for (const char* const scale : {"{}", "{AMP_ARGS: {loss_scale: 1e30}}"}) {
    SCOPED_TRACE(scale);
    ExpectRecorded(ExpectSameRuns({GetParam().config, GetParam().parts, kDropout,
                                   "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}",
                                   absl::StrCat("MODEL: {AMP_PARAMS: ", scale, "}")}),
                   /*least_replays=*/4);
  }
}

TEST_P(GraphTrainingOf, OfSeveralBatchesAnUpdate_IsThatOfTheStandardStep) {
  ExpectRecorded(ExpectSameRuns({GetParam().config, GetParam().parts,
                                 "DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 8}}\nOPTIMIZER: {grad_acc_steps: 2}"}),
                 /*least_replays=*/4);
}

TEST_P(GraphTrainingOf, OnTheCpu_IsThatOfTheStandardStep) {
  EXPECT_EQ(ExpectSameRuns({GetParam().config, GetParam().parts, kDropout}, "cpu").recordings, 0);
}

TEST_P(GraphTrainingOf, CheckpointOfOneStep_GoesOnWithTheOther) {
  GraphRun whole;
  whole.config = {GetParam().config, GetParam().parts, kDropout};
  whole.directory = directory_ + "/whole";
  whole.step = "standard_train_step";
  ASSERT_OK(TrainGraphRun(std::move(whole)));
  for (const auto& [first, second] :
       {std::pair{"standard_train_step", "graph_train_step"}, std::pair{"graph_train_step", "standard_train_step"}}) {
    SCOPED_TRACE(absl::StrCat(first, ", then ", second));
    for (const auto& [step, last] : {std::pair{first, 8}, std::pair{second, static_cast<int>(kSteps)}}) {
      GraphRun run;
      run.config = {GetParam().config, GetParam().parts, kDropout,
                    "CHECKPOINT: {ALLOW_CHANGES: [TRAINER.TRAIN_STEP_NAME]}"};
      run.directory = absl::StrCat(directory_, "/", first);
      run.step = step;
      run.last_iteration = last;
      ASSERT_OK(TrainGraphRun(std::move(run)));
    }
    ExpectSameCheckpoint(absl::StrCat(directory_, "/", first), directory_ + "/whole");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphTrainingOf, testing::ValuesIn(Methods()),
                         [](const auto& info) { return info.param.name; });

// A recording is made on a stream of its own: it must not share nodes with the graph of an update on another.
class NoGraphBeforeHook : public Hook {
 public:
  absl::string_view name() const override { return "no_graph_before"; }
  HookStage stage() const override { return HookStage::kGuard; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnBatchStart(StepContext& context) override {
    for (const NamedParameter& parameter : context.model.Parameters()) {
      if (torch::autograd::impl::try_get_grad_accumulator(parameter.value) == nullptr) continue;
      return absl::InternalError(absl::StrCat("a graph from before holds ", parameter.name));
    }
    return absl::OkStatus();
  }
};

TEST_P(GraphTrainingOf, NothingOfAnUpdateKeepsItsAutogradGraph) {
  for (const char* const batches :
       {"{}", "DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 8}}\nOPTIMIZER: {grad_acc_steps: 2}"}) {
    SCOPED_TRACE(batches);
    GraphRun run;
    run.config = {GetParam().config, GetParam().parts, batches};
    run.directory = absl::StrCat(directory_, "/", ++pairs_);
    run.hook = std::make_unique<NoGraphBeforeHook>();
    ASSERT_OK_AND_ASSIGN(const GraphRunOutcome outcome, TrainGraphRun(std::move(run)));
    EXPECT_GE(outcome.recordings, 1);
  }
}

TEST_F(GraphTraining, TestPhasesBetween_LeaveTheRecordingAsItIs) {
  const GraphRunOutcome outcome = ExpectSameRuns({kSupervisedRun, kDropout, "TEST_MODEL: True"});
  EXPECT_EQ(outcome.recordings, 1);
  EXPECT_EQ(outcome.replays, kSteps - 3);
}

TEST_F(GraphTraining, SmallerLastBatch_IsMadeInFullAndTheRecordingStays) {
  const CapturedLog log;
  const GraphRunOutcome outcome =
      ExpectSameRuns({kSupervisedRun, kDropout, "DATA: {TRAIN: {DATA_LIMIT: 90, DROP_LAST: False}}"});
  EXPECT_EQ(outcome.recordings, 1);
  EXPECT_EQ(outcome.replays, kSteps - 3 - 2) << "two epochs have ended";
  EXPECT_THAT(log.lines, Contains(AllOf(HasSubstr("graph_train_step"), HasSubstr("the shape of a batch has changed"))));
}

TEST_F(GraphTraining, SmallerBatchesOfManyEpochs_AreNeverInARow) {
  GraphRun run;
  run.config = {kSupervisedRun, "DATA: {TRAIN: {DATA_LIMIT: 90, DROP_LAST: False}}"};
  run.directory = directory_;
  run.last_iteration = 24;
  ASSERT_OK_AND_ASSIGN(const GraphRunOutcome outcome, TrainGraphRun(std::move(run)));
  EXPECT_EQ(outcome.recordings, 1);
  EXPECT_EQ(outcome.replays, 24 - 3 - 4) << "four epochs have ended";
}

TEST_F(GraphTraining, Adam_IsRecorded) {
  for (const char* name : {"adam", "adamw"}) {
    ExpectRecorded(ExpectSameRuns({kSupervisedRun, absl::StrCat("OPTIMIZER: {name: ", name, "}")}), 4);
  }
}

TEST_F(GraphTraining, ClippedLarcWithTwoRates_IsRecorded) {
  ExpectRecorded(ExpectSameRuns({Simclr(), "OPTIMIZER: {use_larc: True, larc_config: {clip: True}}"}), 4);
}

struct Obstacle {
  std::string config;
  std::string told;
};

TEST_F(GraphTraining, WhatCannotBeRecorded_IsTheStandardStepWithAReason) {
  const std::vector<Obstacle> obstacles = {
      {"OPTIMIZER: {name: rmsprop}", "optimizer 'rmsprop' takes learning rates from the host"},
      {"hooks: [{type: gradient_collector}]", "hook gradient_collector may have to be called in the middle"},
      {"MODEL: {TRUNK: {VISION_TRANSFORMERS: {CHECKPOINT_BLOCK: True}}}", "USE_ACTIVATION_CHECKPOINTING is true"},
      {"OPTIMIZER: {grad_acc_steps: 2}\nMODEL: {TRUNK: {VISION_TRANSFORMERS: {DROPOUT_RATE: 0.1}}}",
       "random numbers, as of dropout, drop path or a hook, are drawn anew for each of 2 batches"},
      {"OPTIMIZER: {param_schedulers: {weight_decay: {name: cosine, update_interval: step, start_value: 0.1, "
       "end_value: 0.2}}}",
       "the weight decay of parameter group regularized has changed"},
  };
  for (const Obstacle& obstacle : obstacles) {
    SCOPED_TRACE(obstacle.told);
    const CapturedLog log;
    const GraphRunOutcome outcome = ExpectSameRuns({kSupervisedRun, "OPTIMIZER: {num_epochs: 8}", obstacle.config});
    EXPECT_EQ(outcome.recordings, 0);
    EXPECT_THAT(log.lines, Contains(AllOf(HasSubstr("graph_train_step"), HasSubstr(obstacle.told))).Times(1));
  }
}

TEST_F(GraphTraining, SeveralRanks_TrainWithTheStandardStep) {
  std::vector<std::vector<double>> losses;
  for (const std::string step : {"standard_train_step", "graph_train_step"}) {
    const CapturedLog log;
    TrainingRun run;
    run.ranks = 2;
    run.config = {kSupervisedRun, R"(
MACHINE: {DEVICE: gpu}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2, INIT: kaiming_fan_out}}
OPTIMIZER: {num_epochs: 1, param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.1,
            end_value: 0.0}}}
)",
                  absl::StrCat("TRAINER: {TRAIN_STEP_NAME: ", step, "}")};
    run.add_parts = &RegisterStandinGraph;
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> traces, ssl::Train(run));
    losses.push_back(MeanLosses(traces));
    EXPECT_THAT(log.lines, Contains(HasSubstr("operations between ranks are not recorded, and there are 2 of them"))
                               .Times(step == "graph_train_step" ? 2 : 0));
  }
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_THAT(losses[0], SizeIs(5));
}

// A host's hook that looks at gradients and at what the loss scale found: in OnBackward, and as every hook may in
// OnStep.
class GradientsHook : public Hook {
 public:
  explicit GradientsHook(std::vector<double>* out) : out_(*out) {}
  absl::string_view name() const override { return "gradients"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnBackward(StepContext& context) override {
    Look(context);
    return absl::OkStatus();
  }
  absl::Status OnStep(StepContext& context) override {
    Look(context);
    return absl::OkStatus();
  }

 private:
  void Look(const StepContext& context) {
    for (const at::Tensor& parameter : context.optimizer->groups()[0].parameters) {
      out_.push_back(parameter.grad().defined() ? parameter.grad().sum().item<double>() : -1.0);
    }
    out_.push_back(context.found_inf.defined() ? context.found_inf.item<double>() : -1.0);
  }

  std::vector<double>& out_;
};

TEST_F(GraphTraining, Observers_SeeTheGradientsOfEachUpdate) {
  for (const char* const precision : {"{}", "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}"}) {
    SCOPED_TRACE(precision);
    std::vector<std::vector<double>> runs(2);
    for (const bool records : {false, true}) {
      GraphRun run;
      run.config = {kSupervisedRun, precision, "MODEL: {AMP_PARAMS: {AMP_ARGS: {loss_scale: 128}}}"};
      run.step = records ? "graph_train_step" : "standard_train_step";
      run.directory = absl::StrCat(directory_, "/", ++pairs_);
      run.hook = std::make_unique<GradientsHook>(&runs[records ? 1 : 0]);
      ASSERT_OK_AND_ASSIGN(const GraphRunOutcome outcome, TrainGraphRun(std::move(run)));
      EXPECT_EQ(outcome.replays, records ? kSteps - 3 : 0);
    }
    EXPECT_EQ(runs[1], runs[0]);
  }
}

// A host's hook that says more of itself than is true.
class ReadingHook : public Hook {
 public:
  absl::string_view name() const override { return "reading"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
  absl::Status OnLossAndMeter(StepContext& context) override {
    last_ = context.loss.item<double>();
    return absl::OkStatus();
  }

 private:
  double last_ = 0.0;
};

TEST_F(GraphTraining, ReadWithinARecordedUpdate_EndsTheRunAndIsNamed) {
  GraphRun run;
  run.config = {kSupervisedRun};
  run.directory = directory_;
  run.hook = std::make_unique<ReadingHook>();
  EXPECT_THAT(TrainGraphRun(std::move(run)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("recording the update of iteration 2"), HasSubstr("aten::_local_scalar_dense"),
                             HasSubstr("config.TRAINER.TRAIN_STEP_NAME"))));
}

}  // namespace
}  // namespace ssl
