// SPDX-License-Identifier: Apache-2.0
//
// Training runs of transformers, which draw random numbers: whole parameters and shares of them, resumed and
// uninterrupted, methods with a second encoder. Whole sessions from a configuration; ranks take turns.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

constexpr char kMultiCrop[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
LOSS: {name: swav_loss}
)";

constexpr char kTwoViews[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: COLLATOR
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: RandomResizedCrop, size: 16}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
)";

constexpr char kVisionTransformer[] = R"(
MODEL:
  TRUNK:
    NAME: vision_transformer
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                          QKV_BIAS: True, DROP_PATH_RATE: 0.3, CHECKPOINT_BLOCK: False}
  HEAD: {PARAMS: [[swav_head_fsdp, {dims: [16, 6, 16], use_bn: False, num_clusters: [7]}]]}
OPTIMIZER:
  name: adamw
  weight_decay: 0.05
  construct_single_param_group_only: True
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.0005, end_value: 0.0}}
)";

constexpr char kXcit[] = R"(
MODEL:
  TRUNK:
    NAME: xcit
    XCIT: {PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_RATIO: 1.5, DROP_PATH_RATE: 0.3,
           CHECKPOINT_XCA_BLOCK: False}
  HEAD: {PARAMS: [[swav_head_fsdp, {dims: [16, 6, 16], use_bn: False, num_clusters: [7]}]]}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
OPTIMIZER:
  name: adamw
  weight_decay: 0.05
  construct_single_param_group_only: True
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.0005, end_value: 0.0}}
)";

constexpr char kWhole[] = "{}";
constexpr char kSharded[] = "{TRAINER: {TASK_NAME: self_supervision_fsdp_task}}";
constexpr int64_t kUpdates = 20;

TrainingRun Swav(int64_t ranks, const std::string& model, const std::string& changes) {
  TrainingRun run;
  run.ranks = ranks;
  run.config = {kMultiCrop, model, changes};
  run.take_turns = true;
  return run;
}

std::vector<RankTrace> Traces(const TrainingRun& run) {
  const absl::StatusOr<std::vector<RankTrace>> traces = Train(run);
  EXPECT_OK(traces);
  return traces.ok() ? *traces : std::vector<RankTrace>(static_cast<size_t>(run.ranks));
}

// To `bound` of their size; 0: the same bits.
void ExpectSameLosses(const TrainingRun& actual, const TrainingRun& expected, double bound) {
  const std::vector<RankTrace> wanted = Traces(expected);
  const std::vector<RankTrace> found = Traces(actual);
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    ASSERT_EQ(wanted[rank].losses.size(), static_cast<size_t>(kUpdates));
    ASSERT_EQ(found[rank].losses.size(), wanted[rank].losses.size());
    for (size_t step = 0; step < wanted[rank].losses.size(); ++step) {
      const double loss = wanted[rank].losses[step];
      EXPECT_NEAR(found[rank].losses[step], loss, bound * loss) << "rank " << rank << ", update " << step;
    }
  }
  EXPECT_NE(wanted[0].losses.front(), wanted[0].losses.back());
}

TEST(TransformerRuns, WithSharedOutParameters_HaveTheSameLosses) {
  for (const int64_t ranks : {1, 2, 4}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    ExpectSameLosses(Swav(ranks, kVisionTransformer, kSharded), Swav(ranks, kVisionTransformer, kWhole), 1e-6);
  }
}

TEST(TransformerRuns, TheNameForSharding_IsTheSameNetwork) {
  const std::string renamed =
      absl::StrReplaceAll(kVisionTransformer, {{"NAME: vision_transformer", "NAME: vision_transformer_fsdp"}});
  ExpectSameLosses(Swav(2, renamed, kWhole), Swav(2, kVisionTransformer, kWhole), 0.0);
}

TEST(TransformerRuns, RecomputingEachBlock_ChangesNoBit) {
  const std::string recomputing =
      absl::StrReplaceAll(kVisionTransformer, {{"CHECKPOINT_BLOCK: False", "CHECKPOINT_BLOCK: True"}});
  ExpectSameLosses(Swav(2, recomputing, kWhole), Swav(2, kVisionTransformer, kWhole), 0.0);
  ExpectSameLosses(Swav(2, recomputing, kSharded), Swav(2, kVisionTransformer, kSharded), 0.0);
}

TEST(TransformerRuns, WithSharedOutOptimizerStates_HaveTheSameLosses) {
  ExpectSameLosses(Swav(2, kVisionTransformer, "{OPTIMIZER: {use_zero: True}}"), Swav(2, kVisionTransformer, kWhole),
                   1e-6);
}

TEST(TransformerRuns, OfXcit_HaveTheSameLosses) {
  for (const int64_t ranks : {1, 2}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    ExpectSameLosses(Swav(ranks, kXcit, kSharded), Swav(ranks, kXcit, kWhole), 1e-6);
  }
  const std::string changed =
      absl::StrReplaceAll(kXcit, {{"NAME: xcit", "NAME: xcit_fsdp"}, {"XCA_BLOCK: False", "XCA_BLOCK: True"}});
  ExpectSameLosses(Swav(2, changed, kWhole), Swav(2, kXcit, kWhole), 0.0);
}

// Drop path draws what it would have drawn.
void CheckResumes(const TrainingRun& run) {
  TrainingRun uninterrupted = run;
  uninterrupted.directory = MakeTempDir("uninterrupted");
  Traces(uninterrupted);
  TrainingRun resumed = run;
  resumed.directory = MakeTempDir("resumed");
  resumed.last_iteration = 7;
  Traces(resumed);
  resumed.last_iteration = -1;
  EXPECT_EQ(Traces(resumed)[0].losses.size(), static_cast<size_t>(kUpdates - 7));
  ExpectEqual(Saved(resumed.directory, kUpdates), Saved(uninterrupted.directory, kUpdates));
}

TEST(TransformerRuns, AStoppedRun_GoesOnBitForBit) {
  CheckResumes(Swav(2, kVisionTransformer, kWhole));
  CheckResumes(Swav(2, kVisionTransformer, kSharded));
  CheckResumes(Swav(2, kXcit, kSharded));
}

TEST(TransformerRuns, WithAnAverageOfTheWeights_GoOnBitForBit) {
  CheckResumes(Swav(1, kVisionTransformer, "{HOOKS: {EMA_MODEL: {ENABLE_EMA_METERS: False, SAVE_EMA_MODEL: True}}}"));
}

TEST(TransformerRuns, OfMoco_GoOnBitForBit) {
  TrainingRun run = Swav(2, kVisionTransformer, R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}}
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 4, queue_size: 32}}
)");
  run.config[0] = absl::StrReplaceAll(kTwoViews, {{"COLLATOR", "moco_collator"}});
  CheckResumes(run);
}

TEST(TransformerRuns, OfSimclr_HaveTheSameLossesWithSharedOutParameters) {
  const std::string simclr = R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}}
LOSS: {name: simclr_info_nce_loss, simclr_info_nce_loss: {buffer_params: {embedding_dim: 4}}}
)";
  TrainingRun whole = Swav(2, kVisionTransformer, simclr);
  whole.config[0] = absl::StrReplaceAll(kTwoViews, {{"COLLATOR", "simclr_collator"}});
  TrainingRun sharded = whole;
  sharded.config.emplace_back(kSharded);
  ExpectSameLosses(sharded, whole, 1e-6);
}

}  // namespace
}  // namespace ssl
