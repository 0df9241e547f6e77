// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose ranks share out the parameters: the losses, weights and checkpoints of runs that do not. Whole
// sessions from a configuration; ranks are threads.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 20;

// 7 prototypes and 6 hidden units: no number of ranks divides them.
constexpr char kSwav[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL:
  FSDP_CONFIG: {AUTO_SETUP_FSDP: True}
  TRUNK: {NAME: regnet_fsdp, REGNET: {depth: 3, w_0: 8, w_a: 8.0, w_m: 2.0, group_width: 8}}
  HEAD: {PARAMS: [[swav_head_fsdp, {dims: [32, 6, 16], use_bn: True, num_clusters: [7]}]]}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 32, start_iter: 3}}}
OPTIMIZER:
  name: sgd_fsdp
  use_larc: True
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.01, end_value: 0.0}}
)";

constexpr char kSupervised[] = R"(
DATA:
  TRAIN:
    TRANSFORMS:
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[mlp_fsdp, {dims: [16, 4]}]]}
LOSS: {name: cross_entropy_multiple_output_single_target}
TRAINER: {TASK_NAME: self_supervision_fsdp_task}
OPTIMIZER:
  name: sgd
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.01, end_value: 0.0}}
)";

constexpr char kWhole[] =
    "{TRAINER: {TASK_NAME: self_supervision_task}, MODEL: {FSDP_CONFIG: {AUTO_SETUP_FSDP: False}}, OPTIMIZER: "
    "{construct_single_param_group_only: True}}";
constexpr char kSharded[] = "{OPTIMIZER: {construct_single_param_group_only: True}}";

struct Run {
  int64_t ranks = 1;
  std::string method;
  std::string changes = "{}";
  std::string directory;
  int64_t steps = kSteps;  // then it ends, as if it was stopped
};

absl::StatusOr<std::vector<RankTrace>> TryTrain(const Run& of) {
  TrainingRun run;
  run.ranks = of.ranks;
  run.config = {of.method, of.changes};
  run.directory = of.directory;
  run.last_iteration = of.steps;
  return Train(run);
}

using Losses = std::vector<double>;

// The losses of each rank.
std::vector<Losses> TrainedOn(const Run& run) {
  const auto traces = TryTrain(run);
  EXPECT_OK(traces);
  std::vector<Losses> losses(static_cast<size_t>(run.ranks));
  for (size_t rank = 0; traces.ok() && rank < losses.size(); ++rank) losses[rank] = (*traces)[rank].losses;
  return losses;
}

void ExpectSameLosses(const std::vector<Losses>& actual, const std::vector<Losses>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(actual[rank].size(), expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      EXPECT_NEAR(actual[rank][step], expected[rank][step], 1e-6 * expected[rank][step])
          << "rank " << rank << ", step " << step;
    }
  }
}

void CheckLosses(const std::string& method) {
  for (const int64_t ranks : {1, 2, 4}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    const std::vector<Losses> expected = TrainedOn({ranks, method, kWhole, ""});
    ASSERT_FALSE(expected[0].empty());
    EXPECT_NE(expected[0].front(), expected[0].back());
    ExpectSameLosses(TrainedOn({ranks, method, kSharded, ""}), expected);
  }
}

TEST(ShardedRuns, Swav_HasTheSameLosses) { CheckLosses(kSwav); }
TEST(ShardedRuns, Supervised_HasTheSameLosses) { CheckLosses(kSupervised); }

TEST(ShardedRuns, SeveralBatchesPerUpdate_HaveTheSameLosses) {
  // Gradients of two batches are added before or after the mean over ranks, and training magnifies rounding.
  const std::string slow = absl::StrReplaceAll(kSupervised, {{"start_value: 0.01", "start_value: 0.0001"}});
  CheckLosses(absl::StrCat(slow, "  grad_acc_steps: 2\n  weight_decay: 0.01\n"));
}

std::map<std::string, at::Tensor> Saved(const std::string& directory, int64_t step) {
  std::map<std::string, at::Tensor> tensors;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const auto read = ReadSafetensors(absl::StrCat(directory, "/checkpoints/step_", step, "/", file));
    EXPECT_OK(read.status());
    for (const NamedTensor& entry : read->tensors) tensors[absl::StrCat(file, ":", entry.name)] = entry.tensor;
  }
  return tensors;
}

void ExpectEqual(const std::map<std::string, at::Tensor>& actual, const std::map<std::string, at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    EXPECT_TRUE(at::equal(actual.at(name), tensor)) << name;
  }
}

TEST(ShardedRuns, AStoppedRun_GoesOnBitForBit) {
  const std::string whole = MakeTempDir("uninterrupted");
  const std::string stopped = MakeTempDir("stopped");
  TrainedOn({2, kSwav, kSharded, whole});
  TrainedOn({2, kSwav, kSharded, stopped, 8});
  const std::vector<Losses> rest = TrainedOn({2, kSwav, kSharded, stopped});
  EXPECT_EQ(rest[0].size(), 12u);
  ExpectEqual(Saved(stopped, kSteps), Saved(whole, kSteps));
}

TEST(ShardedRuns, ItsCheckpoint_IsThatOfWholeParameters) {
  const std::string sharded = MakeTempDir("sharded");
  const std::string whole = MakeTempDir("whole");
  TrainedOn({4, kSwav, kSharded, sharded});
  TrainedOn({4, kSwav, kWhole, whole});
  const auto actual = Saved(sharded, kSteps);
  const auto expected = Saved(whole, kSteps);
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    ASSERT_EQ(actual.at(name).sizes(), tensor.sizes()) << name;
    const double difference = (actual.at(name) - tensor).abs().max().item<double>();
    EXPECT_LE(difference, 1e-5 * (tensor.abs().max().item<double>() + 1.0)) << name;
  }
}

TEST(ShardedRuns, GoesOnWithWholeParameters_AndBack) {
  const std::string directory = MakeTempDir("changes");
  const std::vector<Losses> expected = TrainedOn({2, kSwav, kWhole, ""});
  std::vector<Losses> losses = TrainedOn({2, kSwav, kSharded, directory, 6});
  for (const auto& [changes, end] : {std::pair<std::string, int64_t>{kWhole, 13}, {kSharded, kSteps}}) {
    const std::vector<Losses> more = TrainedOn({2, kSwav, changes, directory, end});
    for (size_t rank = 0; rank < more.size(); ++rank) {
      losses[rank].insert(losses[rank].end(), more[rank].begin(), more[rank].end());
    }
  }
  ExpectSameLosses(losses, expected);
}

TEST(ShardedRuns, GoesOnWithOtherNumbersOfRanks) {
  // Batch statistics and learning rate are such that the number of ranks does not matter (worlds_test.cc).
  constexpr char kSlow[] =
      "{MODEL: {SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}}, OPTIMIZER: "
      "{construct_single_param_group_only: True, param_schedulers: {lr: {start_value: 0.00003}}}}";
  const std::string directory = MakeTempDir("worlds");
  const std::vector<Losses> expected = TrainedOn({1, kSupervised, kSlow, ""});
  size_t step = 0;
  for (const auto& [ranks, end] : std::vector<std::pair<int64_t, int64_t>>{{4, 6}, {2, 13}, {1, 16}, {4, kSteps}}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> traces, TryTrain({ranks, kSupervised, kSlow, directory, end}));
    const Losses losses = MeanLosses(traces);
    ASSERT_EQ(losses.size(), static_cast<size_t>(end) - step);
    for (size_t i = 0; i < losses.size(); ++i, ++step) {
      EXPECT_NEAR(losses[i], expected[0][step], 1e-5 * expected[0][step]) << ranks << " ranks, step " << step;
    }
  }
}

TEST(ShardedRuns, OptimizerStateThatIsSharedAlready_IsNotSharedAgain) {
  constexpr char kZero[] = "{OPTIMIZER: {construct_single_param_group_only: True, use_zero: True}}";
  ExpectSameLosses(TrainedOn({2, kSupervised, kZero, ""}), TrainedOn({2, kSupervised, kWhole, ""}));
}

TEST(ShardedRuns, WhatNeedsWholeParameters_IsRefused) {
  constexpr char kMoco[] =
      "{LOSS: {name: moco_loss, moco_loss: {embedding_dim: 4, queue_size: 32}}, DATA: {TRAIN: {COLLATE_FUNCTION: "
      "moco_collator, TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, {name: ToTensor}]}}}";
  EXPECT_THAT(TryTrain({2, kSupervised, kMoco, ""}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("moco_loss needs whole parameters")));
}

}  // namespace
}  // namespace ssl
