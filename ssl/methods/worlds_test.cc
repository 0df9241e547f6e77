// SPDX-License-Identifier: Apache-2.0
//
// One training run on one, two and four ranks: with the same images in each global batch, batch norm over all ranks and
// losses over all ranks, a step does not depend on how many ranks share its batch. Whole sessions from a configuration
// with the program's own data loader; ranks are threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kGlobalBatch = 16;
constexpr int64_t kSteps = 20;

// Five batches to an epoch. The learning rate is small because training magnifies rounding: at 0.02, one rank that
// starts from weights which differ by 1e-7 comes to losses which differ by 1e-2 within ten steps, whatever the ranks.
constexpr char kBase[] = R"(
SEED_VALUE: 5
LOG_FREQUENCY: 1000
TEST_MODEL: False
DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 80
    DEFAULT_GRAY_IMG_SIZE: 28
    RANDOM_SYNTHETIC_LABELS: 4
    DROP_LAST: True
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2, INIT: kaiming_fan_out}}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
OPTIMIZER:
  name: sgd
  momentum: 0.9
  num_epochs: 4
  param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.00003, end_value: 0.0}}
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

// What each step of a rank saw.
struct Trace {
  std::vector<double> losses;
  std::vector<std::set<int64_t>> images;
};

class TraceHook : public Hook {
 public:
  explicit TraceHook(Trace* trace) : trace_(*trace) {}
  absl::string_view name() const override { return "trace"; }
  HookStage stage() const override { return HookStage::kReport; }

  absl::Status OnLossAndMeter(StepContext& context) override {
    trace_.losses.push_back(context.loss.item<double>());
    const int64_t* const indices = context.batch->indices.const_data_ptr<int64_t>();
    trace_.images.emplace_back(indices, indices + context.batch->size());
    return absl::OkStatus();
  }

 private:
  Trace& trace_;
};

// The mean loss over ranks and all images of each step.
Trace TrainOn(int64_t ranks, const std::string& method, const std::string& changes = "{}") {
  Registries registries;
  EXPECT_OK(RegisterMethods(&registries));
  EXPECT_OK(RegisterData(&registries));
  ConfigNode config = *ParseYaml(kBase, "base.yaml", nullptr);
  MergeInto(&config, *ParseYaml(method, "method.yaml", nullptr));
  MergeInto(&config, *ParseYaml(changes, "changes.yaml", nullptr));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(ranks));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(kGlobalBatch / ranks));

  std::vector<Trace> traces(static_cast<size_t>(ranks));
  EXPECT_OK(ThreadWorld(ranks, absl::Seconds(120)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    SSL_RETURN_IF_ERROR(
        session->AddHook(std::make_unique<TraceHook>(&traces[static_cast<size_t>(communicator.rank())])));
    return session->Train().status();
  }));
  Trace whole = traces[0];
  for (size_t rank = 1; rank < traces.size(); ++rank) {
    for (size_t step = 0; step < whole.losses.size(); ++step) {
      whole.losses[step] += traces[rank].losses[step];
      whole.images[step].insert(traces[rank].images[step].begin(), traces[rank].images[step].end());
    }
  }
  for (double& loss : whole.losses) loss /= static_cast<double>(ranks);
  return whole;
}

double LargestDifference(const Trace& trace, const Trace& expected) {
  double largest = 0.0;
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    largest = std::max(largest, std::abs(trace.losses[step] - expected.losses[step]) / expected.losses[step]);
  }
  return largest;
}

void CheckWorlds(const std::string& method) {
  const Trace one = TrainOn(1, method);
  ASSERT_EQ(one.losses.size(), static_cast<size_t>(kSteps));
  // What training changes is far above what is compared.
  constexpr char kHardlyTrains[] = "OPTIMIZER: {param_schedulers: {lr: {start_value: 0.0000000001}}}";
  EXPECT_GT(LargestDifference(TrainOn(1, method, kHardlyTrains), one), 1e-2);
  for (const int64_t ranks : {2, 4}) {
    const Trace several = TrainOn(ranks, method);
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

TEST(Worlds, Swav_HasTheSameLosses) { CheckWorlds(kSwav); }
TEST(Worlds, Simclr_HasTheSameLosses) { CheckWorlds(kSimclr); }

// The test above tells the two apart.
TEST(Worlds, StatisticsOfEachRank_AreAnotherTraining) {
  constexpr char kAlone[] = "MODEL: {SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: False}}";
  EXPECT_GT(LargestDifference(TrainOn(2, kSimclr, kAlone), TrainOn(1, kSimclr)), 1e-3);
}

}  // namespace
}  // namespace ssl
