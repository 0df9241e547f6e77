// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose ranks share out the parameters: the losses, weights and checkpoints of runs that do not. Whole
// sessions from a configuration; ranks are threads.
#include <ATen/TensorOperators.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/methods/testing/sharded_run.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

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

// As VISSL's regnet_fsdp trains with AUTO_SETUP_FSDP: each block is gathered, run and freed, and again in backward.
TEST(ShardedRuns, RecomputingEachBlock_HasTheSameLosses) {
  CheckLosses(
      absl::StrReplaceAll(kSwav, {{"AUTO_SETUP_FSDP: True}",
                                   "AUTO_SETUP_FSDP: True}\n  ACTIVATION_CHECKPOINTING: "
                                   "{USE_ACTIVATION_CHECKPOINTING: True, NUM_ACTIVATION_CHECKPOINTING_SPLITS: 100}"}}));
}

TEST(ShardedRuns, SeveralBatchesPerUpdate_HaveTheSameLosses) {
  // Gradients of two batches are added before or after the mean over ranks, and training magnifies rounding.
  const std::string slow = absl::StrReplaceAll(kSupervised, {{"start_value: 0.001", "start_value: 0.0001"}});
  CheckLosses(absl::StrCat(slow, "  grad_acc_steps: 2\n  weight_decay: 0.01\n"));
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

double Mean(const std::vector<Losses>& losses, size_t step) {
  double sum = 0.0;
  for (const Losses& of_rank : losses) sum += of_rank[step];
  return sum / static_cast<double>(losses.size());
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
    const std::vector<Losses> losses = TrainedOn({ranks, kSupervised, kSlow, directory, end});
    ASSERT_EQ(losses[0].size(), static_cast<size_t>(end) - step);
    for (size_t i = 0; i < losses[0].size(); ++i, ++step) {
      EXPECT_NEAR(Mean(losses, i), expected[0][step], 1e-5 * expected[0][step]) << ranks << " ranks, step " << step;
    }
  }
}

TEST(ShardedRuns, OptimizerStateThatIsSharedAlready_IsNotSharedAgain) {
  constexpr char kZero[] = "{OPTIMIZER: {construct_single_param_group_only: True, use_zero: True}}";
  ExpectSameLosses(TrainedOn({2, kSupervised, kZero, ""}), TrainedOn({2, kSupervised, kWhole, ""}));
}

TEST(ShardedRuns, WhatNeedsWholeParameters_IsRefused) {
  std::vector<Losses> losses;
  const absl::Status status = Train({2, kSupervised,
                                     "{LOSS: {name: moco_loss, moco_loss: {embedding_dim: 4, queue_size: 32}}, DATA: "
                                     "{TRAIN: {COLLATE_FUNCTION: moco_collator, TRANSFORMS: [{name: ImgReplicatePil, "
                                     "num_times: 2}, {name: ToTensor}]}}}",
                                     ""},
                                    &losses);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("expected self_supervision_task: moco_loss has a second encoder")));
}

}  // namespace
}  // namespace ssl
