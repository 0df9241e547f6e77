// SPDX-License-Identifier: Apache-2.0
//
// A small run that full_tune goes on from, with the real parts: a ResNet, synthetic images, two epochs.
#ifndef SSL_ENGINES_TESTING_FULL_TUNE_RUN_H_
#define SSL_ENGINES_TESTING_FULL_TUNE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/model.h"
#include "ssl/core/register_core.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/register_engines.h"
#include "ssl/meters/register_meters.h"
#include "ssl/methods/supervised/supervised.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/weights/weights_init.h"

namespace ssl {

inline constexpr char kFullTuneRun[] = R"(
DATA:
  NUM_DATALOADER_WORKERS: 0
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 48
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [16], crop_scales: [[0.5, 1]]}
  TEST:
    SPLIT: test
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 20
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
  HEAD: {PARAMS: [[mlp, {dims: [32, 16]}]]}
FULL_TUNE: {NUM_EPOCHS: 2, BATCH_SIZE: 16, LEARNING_RATE: 0.05}
)";

class FullTuneRun : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& add : {RegisterCore, RegisterData, RegisterEngines, RegisterMeters, RegisterModels, RegisterOptim,
                            RegisterSupervised, RegisterWeights}) {
      ASSERT_OK(add(&registries_));
    }
    ASSERT_OK_AND_ASSIGN(config_, ParseYaml(kFullTuneRun, "run.yaml", nullptr));
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  }

  EngineContext Context() {
    return {config_, registries_, *communicator_, stop_, PosixFileSystem(), directory_, results_};
  }

  // A run's checkpoint: the network as initialised from `seed`.
  void SaveCheckpoint(int64_t iteration = 7, int64_t seed = 0) {
    const ConfigNode config = config_;
    config_.SetPath("SEED_VALUE", ConfigNode::FromInt(seed));
    EngineContext context = Context();
    ASSERT_OK_AND_ASSIGN(const EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kInitial));
    config_ = config;
    ASSERT_OK(PosixFileSystem().RemoveAll(absl::StrCat(directory_, "/checkpoints/step_", iteration)));
    CheckpointStore store({directory_ + "/checkpoints", 2, ""}, PosixFileSystem(), *communicator_);
    ASSERT_OK(store.Open());
    ASSERT_OK(store.Save(iteration, {{kModelFile, CollectState(*network.model).value()}}));
  }

  absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(Communicator& communicator) {
    const BuildContext build{config_, registries_, communicator, 0, directory_, 0};
    return registries_.engines.Make("full_tune", config_, build);
  }

  absl::StatusOr<EngineReport> Run() {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, MakeEngine(*communicator_));
    EngineContext context = Context();
    return engine->Run(context);
  }

  absl::StatusOr<EngineReport> RunRank(Communicator& communicator, FileSystem& file_system = PosixFileSystem()) {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, MakeEngine(communicator));
    ConfigNode results = ConfigNode::Map();
    EngineContext context{config_, registries_, communicator, stop_, file_system, directory_, results};
    return engine->Run(context);
  }

  // As threads; `look` sees the report of each.
  absl::Status RunOnRanks(int64_t ranks, const std::function<void(const EngineReport&)>& look) {
    return ThreadWorld(ranks, absl::Seconds(120)).Run([&](Communicator& communicator) -> absl::Status {
      SSL_ASSIGN_OR_RETURN(const EngineReport report, RunRank(communicator));
      for (int64_t rank = 0; rank < ranks; ++rank) {
        if (rank == communicator.rank()) look(report);
        SSL_RETURN_IF_ERROR(communicator.Barrier());
      }
      return absl::OkStatus();
    });
  }

  absl::Status Check() {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, MakeEngine(*communicator_));
    EngineContext context = Context();
    return engine->Check(context);
  }

  std::string directory_ = MakeTempDir("full_tune");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  Registries registries_;
  ConfigNode config_;
  ConfigNode results_ = ConfigNode::Map();
  StopToken stop_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_TESTING_FULL_TUNE_RUN_H_
