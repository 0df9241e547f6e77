// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/testing/tiny_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/method.h"
#include "ssl/core/step_context.h"
#include "ssl/data/register_data.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/meters/register_meters.h"
#include "ssl/models/register_models.h"
#include "ssl/optim/register_optim.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr char kRun[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1
TEST_MODEL: False
DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 40
    DEFAULT_GRAY_IMG_SIZE: 20
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 8
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - name: RandomHorizontalFlip
      - name: ToTensor
  TEST:
    SPLIT: test
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 24
    DEFAULT_GRAY_IMG_SIZE: 20
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}]
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
  HEAD: {PARAMS: [[mlp, {dims: [32, 32, 16], use_bn: True}]]}
LOSS: {name: views_loss}
OPTIMIZER:
  {name: sgd, momentum: 0.9, num_epochs: 2, param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}}
)";

constexpr int64_t kUpdates = 10;

// Embeddings of the first two views, each drawn to the other; a constant keeps them from shrinking to one point.
class ViewsMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext& context) override {
    const int64_t rows = context.batch->size();
    const at::Tensor first = context.outputs[0].narrow(0, 0, rows);
    const at::Tensor second = context.outputs[0].narrow(0, rows, rows);
    context.loss = (first - second).square().mean() + (first.std(0) - 1.0).square().mean();
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Method>> MakeViewsMethod(const ConfigNode& params, const BuildContext& context) {
  return std::make_unique<ViewsMethod>();
}

class RecordingSink : public MetricSink {
 public:
  explicit RecordingSink(std::vector<MetricReport>* reports) : reports_(reports) {}
  absl::Status Write(const MetricReport& report) override {
    reports_->push_back(report);
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  std::vector<MetricReport>* reports_;
};

absl::StatusOr<ConfigNode> MakeConfig(const std::string& overrides) {
  std::vector<std::string> warnings;
  SSL_ASSIGN_OR_RETURN(ConfigNode config, ParseYaml(kRun, "tiny_run.yaml", &warnings));
  SSL_ASSIGN_OR_RETURN(const ConfigNode changes, ParseYaml(overrides, "test.yaml", &warnings));
  MergeInto(&config, changes);
  return config;
}

}  // namespace

Registries TinyRunRegistries() {
  Registries registries;
  EXPECT_OK(RegisterData(&registries));
  EXPECT_OK(RegisterHooks(&registries));
  EXPECT_OK(RegisterMeters(&registries));
  EXPECT_OK(RegisterModels(&registries));
  EXPECT_OK(RegisterOptim(&registries));
  EXPECT_OK(registries.methods.Register("views_loss", &MakeViewsMethod));
  return registries;
}

absl::StatusOr<std::unique_ptr<Session>> OpenTinyRun(const std::string& overrides, SessionOptions options) {
  SSL_ASSIGN_OR_RETURN(ConfigNode config, MakeConfig(overrides));
  if (config.FindPath("CHECKPOINT.DIR") == nullptr) config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(""));
  return Session::Create(config, TinyRunRegistries(), std::move(options));
}

std::vector<double> TinyRunResult::Values(const std::string& name) const {
  std::vector<double> values;
  for (const MetricReport& report : reports) {
    const auto found = report.values.find(name);
    if (found != report.values.end()) values.push_back(found->second);
  }
  return values;
}

std::set<std::string> TinyRunResult::ImageNames() const {
  std::set<std::string> names;
  for (const MetricReport& report : reports) {
    for (const auto& [name, image] : report.images) names.insert(name);
  }
  return names;
}

std::set<std::string> TinyRunResult::HistogramNames() const {
  std::set<std::string> names;
  for (const MetricReport& report : reports) {
    for (const auto& [name, histogram] : report.histograms) names.insert(name);
  }
  return names;
}

absl::StatusOr<TinyRunResult> TrainTinyRun(const std::string& overrides) {
  TinyRunResult result;
  result.directory = MakeTempDir("tiny_run");
  SSL_ASSIGN_OR_RETURN(ConfigNode config, MakeConfig(overrides));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(result.directory));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, TinyRunRegistries(), {}));
  session->metrics().AddSink(std::make_unique<RecordingSink>(&result.reports));
  SSL_RETURN_IF_ERROR(session->Train().status());
  const std::string step = absl::StrCat(result.directory, "/checkpoints/step_", kUpdates, "/");
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state_rank0.safetensors"}) {
    SSL_ASSIGN_OR_RETURN(result.state[file], PosixFileSystem().Read(step + file));
  }
  return result;
}

}  // namespace ssl
