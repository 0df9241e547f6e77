// SPDX-License-Identifier: Apache-2.0
//
// One training run on one, two and four ranks: with the same images in each global batch, batch norm over all ranks and
// losses over all ranks, a step does not depend on how many ranks share its batch. Whole sessions from a configuration
// with the program's own data loader; ranks are threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

constexpr int64_t kGlobalBatch = 16;
constexpr int64_t kSteps = 20;

// Learning rates are small because training magnifies rounding: at 0.02, one rank of SwAV that starts from weights
// which differ by 1e-7 comes to losses which differ by 1e-2 within ten steps, whatever the ranks.
constexpr double kRate = 3e-5;
// Of losses that training changes less.
constexpr double kSupervisedRate = 5e-4;
constexpr double kMocoRate = 1e-3;
constexpr double kHardlyTrains = 1e-10;

// Five batches to an epoch.
constexpr char kCommon[] = R"(
DATA: {TRAIN: {DEFAULT_GRAY_IMG_SIZE: 28}}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2, INIT: kaiming_fan_out}}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, end_value: 0.0}}}
)";

constexpr char kSwav[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: RandomHorizontalFlip}
      - {name: ColorJitter, brightness: 0.4, contrast: 0.4, p: 0.8}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [16, 32, 16], use_bn: True, num_clusters: [8]}]]}}
LOSS: {name: swav_loss}
)";

constexpr char kSimclr[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: simclr_collator
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: RandomResizedCrop, size: 16}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_bn: True, use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: simclr_info_nce_loss, simclr_info_nce_loss: {buffer_params: {embedding_dim: 16}}}
)";

// The key encoder's batch norm is over all ranks as well, so that no images are exchanged: shuffled batch norm, which
// is what MoCo has otherwise, normalises by the images of one rank and is another training in each world.
constexpr char kMoco[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: moco_collator
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: RandomResizedCrop, size: 16, scale: [0.4, 1.0]}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 16, queue_size: 48, momentum: 0.9}}
)";

constexpr char kBarlowTwins[] = R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: simclr_collator
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: RandomResizedCrop, size: 16}
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32, 16], use_bn: True, use_relu: True, use_bias: False}]]}}
LOSS: {name: barlow_twins_loss, barlow_twins_loss: {embedding_dim: 16}}
)";

constexpr char kSupervised[] = R"(
DATA:
  TRAIN:
    TRANSFORMS:
      - {name: RandomHorizontalFlip}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}}
LOSS: {name: cross_entropy_multiple_output_single_target}
)";

// The mean loss over the ranks, and all images, of each step.
struct Trace {
  std::vector<double> losses;
  std::vector<std::set<int64_t>> images;
};

Trace TrainOn(int64_t ranks, const std::string& method, double rate, const std::string& changes = "{}") {
  TrainingRun run;
  run.ranks = ranks;
  run.samples_per_update = kGlobalBatch;
  run.config = {kCommon, method, changes,
                absl::StrFormat("OPTIMIZER: {param_schedulers: {lr: {start_value: %.12f}}}", rate)};
  const auto traces = Train(run);
  EXPECT_OK(traces);
  if (!traces.ok()) return {};
  Trace whole = {MeanLosses(*traces), (*traces)[0].images};
  for (const RankTrace& trace : *traces) {
    for (size_t step = 0; step < whole.images.size(); ++step) {
      whole.images[step].insert(trace.images[step].begin(), trace.images[step].end());
    }
  }
  return whole;
}

double LargestDifference(const Trace& trace, const Trace& expected) {
  double largest = 0.0;
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    largest = std::max(largest, std::abs(trace.losses[step] - expected.losses[step]) / expected.losses[step]);
  }
  return largest;
}

// rate_of: by the number of ranks.
void CheckWorlds(const std::string& method, const std::function<double(int64_t)>& rate_of) {
  const Trace one = TrainOn(1, method, rate_of(1));
  ASSERT_EQ(one.losses.size(), static_cast<size_t>(kSteps));
  // What training changes is far above what is compared.
  EXPECT_GT(LargestDifference(TrainOn(1, method, kHardlyTrains), one), 1e-2);
  for (const int64_t ranks : {2, 4}) {
    const Trace several = TrainOn(ranks, method, rate_of(ranks));
    ASSERT_EQ(several.losses.size(), one.losses.size());
    for (int64_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(several.images[step], one.images[step]) << ranks << " ranks, step " << step;
      EXPECT_EQ(one.images[step].size(), static_cast<size_t>(kGlobalBatch));
    }
    for (int64_t step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(several.losses[step], one.losses[step], 1e-5 * one.losses[step]) << ranks << " ranks, step " << step;
    }
  }
}

void CheckWorlds(const std::string& method, double rate) {
  CheckWorlds(method, [rate](int64_t) { return rate; });
}

TEST(Worlds, Swav_HasTheSameLosses) { CheckWorlds(kSwav, kRate); }
TEST(Worlds, Simclr_HasTheSameLosses) { CheckWorlds(kSimclr, kRate); }
TEST(Worlds, Moco_HasTheSameLosses) { CheckWorlds(kMoco, kMocoRate); }
TEST(Worlds, Supervised_HasTheSameLosses) { CheckWorlds(kSupervised, kSupervisedRate); }

// As in VISSL, each rank has the gradient of its own images in the loss of all, and their mean is a share of the whole
// loss's (barlow_twins_loss.h): the learning rate makes up for it.
TEST(Worlds, BarlowTwins_HasTheSameLosses_AtARateThatFollowsTheRanks) {
  CheckWorlds(kBarlowTwins, [](int64_t ranks) { return kRate * static_cast<double>(ranks); });
}

// The test above tells the two apart.
TEST(Worlds, StatisticsOfEachRank_AreAnotherTraining) {
  constexpr char kAlone[] = "MODEL: {SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: False}}";
  EXPECT_GT(LargestDifference(TrainOn(2, kSimclr, kRate, kAlone), TrainOn(1, kSimclr, kRate)), 1e-3);
}

// The trunk has kernels of its own on the CPU. Last: the process has an accelerator from then on.
TEST(Worlds, TwoRanksOnADevice_HaveTheLossesOfTheCpu) {
  constexpr char kDevice[] = "MACHINE: {DEVICE: gpu}";
  std::vector<Trace> expected;
  for (const char* const method : {kSwav, kSimclr, kMoco}) expected.push_back(TrainOn(2, method, kRate));
  StandinDevice::Install();
  EXPECT_LT(LargestDifference(TrainOn(2, kSwav, kRate, kDevice), expected[0]), 1e-4);
  EXPECT_LT(LargestDifference(TrainOn(2, kSimclr, kRate, kDevice), expected[1]), 1e-4);
  EXPECT_LT(LargestDifference(TrainOn(2, kMoco, kRate, kDevice), expected[2]), 1e-4);
}

}  // namespace
}  // namespace ssl
