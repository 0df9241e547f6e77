// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/testing/matrix_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>

#include <utility>

#include "gmock/gmock.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/register_core.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/register_engines.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr char kMatrixRun[] = R"(
SEED_VALUE: 3
DATA:
  NUM_DATALOADER_WORKERS: 0
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 60
    DEFAULT_GRAY_IMG_SIZE: 8
    IMAGE_CHANNELS: 1
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
  TEST:
    SPLIT: test
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 20
    DEFAULT_GRAY_IMG_SIZE: 8
    IMAGE_CHANNELS: 1
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS:
      - {name: ToTensor}
      - {name: Normalize, mean: [0.5], std: [0.25]}
NEAREST_NEIGHBOR: {TOPK: 5, L2_NORM_FEATS: True, LAYERS: [all]}
LINEAR_EVAL: {NUM_EPOCHS: 3, BATCH_SIZE: 16, LEARNING_RATES: [0.01, 0.1], LAYERS: [all]}
)";

}  // namespace

MatrixModel::MatrixModel(std::function<void()> on_features)
    : weight(at::randn({64, 4})), on_features_(std::move(on_features)) {}

std::vector<at::Tensor> MatrixModel::Forward(const std::vector<at::Tensor>& views) {
  return {views[0].mean(1).flatten(1).matmul(weight)};
}

std::vector<at::Tensor> MatrixModel::Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) {
  if (on_features_) on_features_();
  std::vector<at::Tensor> stages;
  for (const FeatureRequest& request : requests) {
    TORCH_CHECK_VALUE(request.name == "half" || request.name == "all", "no stage ", request.name);
    const at::Tensor all = images.mean(1).flatten(1).matmul(weight);
    const at::Tensor stage = request.name == "half" ? all.slice(1, 0, 2) : all;
    stages.push_back(request.pool.kind == FeaturePool::Kind::kIdentity ? stage : stage.mean(1, /*keepdim=*/true));
  }
  return stages;
}

MatrixRun::MatrixRun() : directory_(MakeTempDir("engines")), communicator_(MakeLocalCommunicator()) {}

void MatrixRun::SetUp() {
  ASSERT_OK(RegisterCore(&registries_));
  ASSERT_OK(RegisterData(&registries_));
  ASSERT_OK(RegisterEngines(&registries_));
  ASSERT_OK(registries_.models.Register("multi_input_output_model", [this](const ConfigNode&, const BuildContext&) {
    const auto count = [this] {
      if (++feature_calls_ == stop_at_call_) stop_->Request(kStopTerminate);
      TORCH_CHECK(feature_calls_ != fail_at_call_, "call ", fail_at_call_, " fails");
    };
    return absl::StatusOr<std::unique_ptr<Model>>(std::make_unique<MatrixModel>(count));
  }));
  ASSERT_OK_AND_ASSIGN(config_, ParseYaml(kMatrixRun, "test.yaml", nullptr));
  ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
}

void MatrixRun::SaveCheckpoint(const at::Tensor& weight, int64_t iteration) {
  MatrixModel model;
  model.weight = weight;
  CheckpointStoreOptions options;
  options.directory = directory_ + "/checkpoints";
  options.config_json = RunIdentity(config_, registries_.options, {}).ToJson();
  CheckpointStore store(std::move(options), PosixFileSystem(), *communicator_);
  ASSERT_OK(store.Open());
  ASSERT_OK(store.Save(iteration, {{kModelFile, CollectState(model).value()}}));
}

void MatrixRun::SaveCheckpoint(double value) { SaveCheckpoint(at::full({64, 4}, value, at::kFloat)); }

void MatrixRun::SaveRandomCheckpoint() {
  SaveCheckpoint(at::randn({64, 4}, at::detail::createCPUGenerator(1), at::kFloat));
}

void MatrixRun::Set(const std::string& path, const std::string& yaml) {
  config_.SetPath(path, ParseYaml(yaml, "override.yaml", nullptr).value());
}

void MatrixRun::Restart() {
  stop_ = std::make_unique<StopToken>();
  stop_at_call_ = -1;
  fail_at_call_ = -1;
  feature_calls_ = 0;
  results_ = ConfigNode::Map();
}

EngineContext MatrixRun::Context() {
  return {config_, registries_, *communicator_, *stop_, *file_system_, directory_, results_};
}

absl::StatusOr<EngineReport> MatrixRun::Run(const std::string& engine, RunProgress* progress) {
  const BuildContext build{config_, registries_, *communicator_, 3, directory_, 0, *file_system_};
  absl::StatusOr<std::unique_ptr<Engine>> made = registries_.engines.Make(engine, config_, build);
  if (!made.ok()) return made.status();
  EngineContext context = Context();
  context.progress = progress;
  return (*made)->Run(context);
}

double MatrixRun::Result(const std::string& path) const {
  const ConfigNode* node = results_.FindPath(path);
  return node != nullptr ? node->AsDouble().value_or(-1.0) : -2.0;
}

}  // namespace ssl
