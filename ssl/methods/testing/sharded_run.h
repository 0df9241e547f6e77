// SPDX-License-Identifier: Apache-2.0
//
// Training runs of several ranks, to compare those that share out their parameters with those that do not. Whole
// sessions from a configuration; ranks are threads.
#ifndef SSL_METHODS_TESTING_SHARDED_RUN_H_
#define SSL_METHODS_TESTING_SHARDED_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/registries.h"

namespace ssl {

inline constexpr int64_t kSteps = 20;

// Sections of a configuration. 7 prototypes and 6 hidden units: no number of ranks divides them. The learning rates are
// low, since training magnifies the rounding of sums that are added in another order; 0.0011 in place of 0.001 changes
// the last loss by 6e-4 of its size, which ExpectSameLosses sees.
inline constexpr char kSwav[] = R"(
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
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.001, end_value: 0.0}}
)";

inline constexpr char kSupervised[] = R"(
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
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.001, end_value: 0.0}}
)";

inline constexpr char kWhole[] =
    "{TRAINER: {TASK_NAME: self_supervision_task}, MODEL: {FSDP_CONFIG: {AUTO_SETUP_FSDP: False}}, OPTIMIZER: "
    "{construct_single_param_group_only: True}}";
inline constexpr char kSharded[] = "{OPTIMIZER: {construct_single_param_group_only: True}}";

using Losses = std::vector<double>;

struct Run {
  int64_t ranks = 1;
  std::string method;
  std::string changes = "{}";
  std::string directory = "";  // "": it keeps no files
  int64_t steps = kSteps;      // then it ends, as if it was stopped
  // What the run needs beside the program's own parts.
  std::function<absl::Status(Registries*)> add_parts = nullptr;
};

// The losses of each rank; of 16 samples in a step, whatever the number of ranks.
absl::Status Train(const Run& run, std::vector<Losses>* losses);
// The same of a run that has to succeed.
std::vector<Losses> TrainedOn(const Run& run);

// To 1e-6 of their size.
void ExpectSameLosses(const std::vector<Losses>& actual, const std::vector<Losses>& expected);

}  // namespace ssl

#endif  // SSL_METHODS_TESTING_SHARDED_RUN_H_
