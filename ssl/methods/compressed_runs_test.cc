// SPDX-License-Identifier: Apache-2.0
//
// Training runs whose gradients travel in a short type (DISTRIBUTED.GRADIENT_COMPRESSION), beside runs whose do not.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 20;

constexpr char kSupervised[] = R"(
DATA:
  TRAIN:
    TRANSFORMS:
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}
LOSS: {name: cross_entropy_multiple_output_single_target}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.00003, end_value: 0.0}}}
)";

constexpr char kSwav[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[swav_head, {dims: [16, 32, 16], use_bn: True, num_clusters: [8]}]]}
LOSS: {name: swav_loss}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.00003, end_value: 0.0}}}
)";

std::string Compression(const std::string& type) {
  return absl::StrCat("DISTRIBUTED: {GRADIENT_COMPRESSION: ", type, "}");
}

TrainingRun RunOf(int64_t ranks, const std::string& method, const std::string& compression) {
  TrainingRun run;
  run.ranks = ranks;
  run.config = {method, Compression(compression)};
  return run;
}

std::vector<double> LossesOf(const TrainingRun& run) {
  const auto traces = Train(run);
  EXPECT_OK(traces);
  return traces.ok() ? MeanLosses(*traces) : std::vector<double>();
}

double LargestDifference(const std::vector<double>& losses, const std::vector<double>& expected) {
  EXPECT_EQ(losses.size(), expected.size());
  double largest = 0.0;
  for (size_t step = 0; step < std::min(losses.size(), expected.size()); ++step) {
    largest = std::max(largest, std::abs(losses[step] - expected[step]) / expected[step]);
  }
  return largest;
}

// Gradients that are rounded to 8 or 11 bits, as shares and as their sum, move a loss by twice that part of what
// training moves it by, at most. At a small learning rate, because training magnifies all differences (worlds_test.cc).
void CheckLosses(const std::string& method) {
  for (const int64_t ranks : {2, 4}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    const std::vector<double> expected = LossesOf(RunOf(ranks, method, "none"));
    ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
    TrainingRun untrained = RunOf(ranks, method, "none");
    untrained.config.push_back("OPTIMIZER: {param_schedulers: {lr: {start_value: 0.0000000001}}}");
    const double learned = LargestDifference(LossesOf(untrained), expected);
    EXPECT_GT(learned, 1e-3);
    for (const auto& [type, bits] : {std::pair<const char*, int>{"bf16", 8}, {"fp16", 11}}) {
      const double difference = LargestDifference(LossesOf(RunOf(ranks, method, type)), expected);
      EXPECT_LT(difference, learned * 2 * std::ldexp(1.0, -bits)) << type << ", of " << learned;
      EXPECT_GT(difference, 0.0) << "nothing was rounded";
    }
  }
}

TEST(CompressedRuns, Supervised_LearnsWhatItLearnsWithout) { CheckLosses(kSupervised); }
TEST(CompressedRuns, Swav_LearnsWhatItLearnsWithout) { CheckLosses(kSwav); }

TEST(CompressedRuns, OneRank_HasNothingToExchange) {
  EXPECT_EQ(LossesOf(RunOf(1, kSupervised, "bf16")), LossesOf(RunOf(1, kSupervised, "none")));
}

// Also with a loss scale, which infinite gradients lower, and with two batches in each update.
TEST(CompressedRuns, AStoppedRun_GoesOnBitForBit) {
  constexpr char kHalfPrecision[] =
      "{MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}, OPTIMIZER: {grad_acc_steps: 2, num_epochs: 10}}";
  for (const char* type : {"bf16", "fp16"}) {
    TrainingRun run = RunOf(2, kSupervised, type);
    if (type == std::string("fp16")) run.config.push_back(kHalfPrecision);
    run.directory = MakeTempDir("uninterrupted");
    ASSERT_OK(Train(run));
    const auto whole = Saved(run.directory, kSteps);
    run.directory = MakeTempDir("stopped");
    run.last_iteration = 8;
    ASSERT_OK(Train(run));
    run.last_iteration = -1;
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> rest, Train(run));
    EXPECT_EQ(rest[0].first_iteration, 8);
    ExpectEqual(Saved(run.directory, kSteps), whole);
  }
}

TEST(CompressedRuns, SharedOptimizerState_IsToTheBitThatOfWhole) {
  TrainingRun run = RunOf(2, kSupervised, "bf16");
  const std::vector<double> whole = LossesOf(run);
  run.config.push_back("OPTIMIZER: {use_zero: True}");
  EXPECT_EQ(LossesOf(run), whole);
}

TEST(CompressedRuns, ParametersThatAreSharedOut_AreRefused) {
  TrainingRun run = RunOf(2, kSupervised, "bf16");
  run.config.push_back("{MODEL: {FSDP_CONFIG: {AUTO_SETUP_FSDP: True}}}");
  EXPECT_THAT(Train(run), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("config.DISTRIBUTED.GRADIENT_COMPRESSION is bf16")));
}

}  // namespace
}  // namespace ssl
