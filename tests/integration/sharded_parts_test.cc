// SPDX-License-Identifier: Apache-2.0
//
// Runs that share out their parameters, with hooks, and with a trunk of a host's own that has a parameter outside its
// blocks: every rank has it whole, beside shards, and norms count it once.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/hook.h"
#include "ssl/core/metric_report.h"
#include "ssl/core/registries.h"
#include "ssl/methods/testing/sharded_run.h"
#include "ssl/models/trunk.h"
#include "ssl/models/trunks/resnet.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// A ResNet whose output a trained pair of numbers, [1, 2], scales and shifts.
class ScalingTrunk : public Trunk {
 public:
  explicit ScalingTrunk(std::unique_ptr<Trunk> inner) : inner_(std::move(inner)) {}

  at::Tensor Forward(const at::Tensor& images) override {
    return inner_->Forward(images) * scale_[0][0] + scale_[0][1];
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override {
    return inner_->Features(images, names);
  }
  std::vector<std::string> feature_names() const override { return inner_->feature_names(); }
  int64_t output_dim() const override { return inner_->output_dim(); }
  ModelTensors Tensors() const override {
    ModelTensors tensors = inner_->Tensors();
    tensors.push_back({"scale", scale_, TensorRole::kWeight});
    return tensors;
  }
  void SetTraining(bool training) override { inner_->SetTraining(training); }
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    inner_->SynchronizeBatchNorm(group);
  }
  size_t num_blocks() const override { return inner_->num_blocks(); }
  at::Tensor RunBlock(size_t index, const at::Tensor& input, NormMode mode) const override {
    return inner_->RunBlock(index, input, mode);
  }
  ModelTensors BlockTensors(size_t index) const override { return inner_->BlockTensors(index); }
  std::vector<std::string> block_names() const override { return inner_->block_names(); }
  void SetShards(ParameterShards* shards) override { inner_->SetShards(shards); }
  void SetRecomputed(RecomputePlan plan) override { inner_->SetRecomputed(std::move(plan)); }

 private:
  const std::unique_ptr<Trunk> inner_;
  const at::Tensor scale_ = at::full({1, 2}, 0.8).set_requires_grad(true);
};

absl::StatusOr<std::unique_ptr<Trunk>> MakeScalingTrunk(const ConfigNode&, const BuildContext& context) {
  ResNetOptions options;
  options.depth = 18;
  options.width_multiplier = 0.125;
  options.stem = "small";
  options.stages = 2;
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Trunk> inner, MakeResNet(options, context.seed));
  return std::make_unique<ScalingTrunk>(std::move(inner));
}

using Norms = std::vector<std::pair<std::string, double>>;

// Keeps what is reported as norms.
class NormSink : public MetricSink {
 public:
  explicit NormSink(Norms* norms) : norms_(*norms) {}

  absl::Status Write(const MetricReport& report) override {
    for (const auto& [name, value] : report.values) {
      if (name == "Training/grad_norm" || absl::StartsWith(name, "Gradients/")) norms_.emplace_back(name, value);
    }
    // A histogram is of all elements.
    for (const auto& [name, histogram] : report.histograms) norms_.emplace_back(name, histogram.count);
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  Norms& norms_;
};

struct Trained {
  std::vector<Losses> losses;
  Norms norms;
  std::map<std::string, at::Tensor> weights;
};

Trained TrainedWith(const std::string& changes, const char* task) {
  Trained trained;
  Run run;
  run.ranks = 2;
  run.directory = MakeTempDir("outside");
  run.add_parts = [&](Registries* registries) -> absl::Status {
    registries->configured_sinks =
        [&](const BuildContext&) -> absl::StatusOr<std::vector<std::unique_ptr<MetricSink>>> {
      std::vector<std::unique_ptr<MetricSink>> sinks;
      sinks.push_back(std::make_unique<NormSink>(&trained.norms));
      return sinks;
    };
    return registries->trunks.Register("scaling", &MakeScalingTrunk);
  };
  run.method = absl::StrCat(kSupervised, "  construct_single_param_group_only: True\n");
  run.changes =
      absl::StrCat("{LOG_FREQUENCY: 1, MODEL: {TRUNK: {NAME: scaling}", changes, ", TRAINER: {TASK_NAME: ", task, "}}");
  trained.losses = TrainedOn(run);
  trained.weights = Saved(run.directory, kSteps, {"model.safetensors"});
  return trained;
}

// changes: behind the trunk, in MODEL.
void ExpectSameTraining(const std::string& changes) {
  const Trained whole = TrainedWith(changes, "self_supervision_task");
  const Trained sharded = TrainedWith(changes, "self_supervision_fsdp_task");
  ExpectSameLosses(sharded.losses, whole.losses);
  ASSERT_EQ(sharded.norms.size(), whole.norms.size());
  for (size_t i = 0; i < whole.norms.size(); ++i) {
    EXPECT_EQ(sharded.norms[i].first, whole.norms[i].first);
    EXPECT_NEAR(sharded.norms[i].second, whole.norms[i].second, 1e-5 * whole.norms[i].second) << whole.norms[i].first;
  }
  const std::string scale = "model.safetensors:trunk.scale";
  ASSERT_EQ(sharded.weights.count(scale), 1u);
  const at::Tensor expected = whole.weights.at(scale);
  EXPECT_NE(expected[0][0].item<float>(), 0.8F) << "it is trained";
  EXPECT_LE((sharded.weights.at(scale) - expected).abs().max().item<double>(), 1e-6);
}

// Without a large epsilon the rate is a quotient of two norms, in which a common factor cancels.
TEST(ParameterOutsideTheBlocks, CountsOnceInLarc) {
  ExpectSameTraining(
      "}, OPTIMIZER: {use_larc: True, larc_config: {clip: False, trust_coefficient: 0.1, epsilon: 0.5}, "
      "param_schedulers: {lr: {start_value: 0.002}}}");
}

TEST(ParameterOutsideTheBlocks, CountsOnceInClippedNorms) {
  for (const char* type : {"2", "1.5", "inf"}) {
    SCOPED_TRACE(type);
    ExpectSameTraining(absl::StrCat(", GRAD_CLIP: {USE_GRAD_CLIP: True, NORM_TYPE: \"", type, "\", MAX_NORM: 0.05}}"));
  }
}

TEST(SharedOutParameters, GradientCollectorHasTheNormsOfWholeGradients) {
  for (const char* measure : {"norm", "histogram"}) {
    SCOPED_TRACE(measure);
    ExpectSameTraining(absl::StrCat("}, hooks: [{type: gradient_collector, kwargs: {freq: 3, measure: ", measure, "}}]",
                                    ", OPTIMIZER: {param_schedulers: {lr: {start_value: 0.001}}}"));
  }
}

TEST(SharedOutParameters, MemoryCheckpointRecomputesAllCandidates) {
  ExpectSameTraining("}, hooks: [{type: memory_checkpoint}]");
}

TEST(SharedOutParameters, MemoryCheckpointThatPlans_IsRefused) {
  ssl::Run run = {2, kSupervised, "{hooks: [{type: memory_checkpoint, kwargs: {dc_cfg: {max_memory: 8}}}]}"};
  std::vector<Losses> losses;
  EXPECT_THAT(Train(run, &losses), StatusIs(absl::StatusCode::kUnimplemented,
                                            HasSubstr("memory_checkpoint: dc_cfg plans on each rank for itself")));
}

}  // namespace
}  // namespace ssl
