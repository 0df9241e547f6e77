// SPDX-License-Identifier: Apache-2.0
//
// Networks whose parameters are shared out between ranks: outputs and gradients are those of whole parameters.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/autocast.h"
#include "ssl/core/model.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/models/layers.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// 5 prototypes: no number of ranks divides them.
constexpr char kResNet[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[swav_head, {dims: [16, 16, 8], use_bn: true, num_clusters: [5]}]]}
)";

// Class token and positions have one row each: the first rank's.
constexpr char kVisionTransformer[] = R"(
MODEL:
  TRUNK:
    NAME: vision_transformer_fsdp
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30}
  HEAD: {PARAMS: [[swav_head, {dims: [16, 16, 8], use_bn: true, num_clusters: [5]}]]}
)";

constexpr char kXcit[] = R"(
MODEL:
  TRUNK:
    NAME: xcit_fsdp
    XCIT: {PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_RATIO: 1.5, DROP_PATH_RATE: 0}
  HEAD: {PARAMS: [[swav_head, {dims: [16, 16, 8], use_bn: true, num_clusters: [5]}]]}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
)";

constexpr char kRecomputeEach[] =
    "  ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: true, NUM_ACTIVATION_CHECKPOINTING_SPLITS: 100}\n";

struct Case {
  std::string config = kResNet;
  Autocast autocast = Autocast::kOff;
  int64_t batches = 1;
  std::vector<int64_t> sides = {16, 16, 8};  // of the views; those of one side run together
  at::ScalarType type = at::kFloat;
};

absl::StatusOr<std::unique_ptr<Model>> Build(Communicator& communicator, const std::string& text) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterModels(&registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode config, ParseYaml(text, "model.yaml", nullptr));
  return registries.models.Make("multi_input_output_model", *config.Find("MODEL"),
                                BuildContext{config, registries, communicator, /*seed=*/7, ""});
}

// Other ones on each rank.
std::vector<at::Tensor> Views(const std::vector<int64_t>& sides, int64_t rank, int64_t batch, at::ScalarType type) {
  at::Generator generator = MakeGenerator(100 * batch + rank);
  std::vector<at::Tensor> views;
  for (const int64_t side : sides) {
    views.push_back(at::empty({4, 3, side, side}, at::kFloat).normal_(0.0, 1.0, generator).to(type));
  }
  return views;
}

absl::Status ConvertTo(at::ScalarType type, Model& model) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  for (const NamedTensor& entry : state) {
    at::Tensor tensor = entry.tensor;
    if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(type));
  }
  return absl::OkStatus();
}

at::Tensor LossOf(const at::Tensor& scores) { return (scores.pow(3) + scores.sin() * 0.3).sum() / 4; }

struct Trained {
  std::vector<at::Tensor> outputs;
  std::vector<std::string> names;
  std::vector<at::Tensor> gradients;  // means over the ranks, whole
  int64_t elements = 0;               // of the parameters on this rank
};

absl::StatusOr<at::Tensor> MeanGradient(Model& model, const at::Tensor& parameter, Communicator& communicator) {
  at::Tensor gradient = parameter.grad();
  if (model.parameter_shards() == nullptr) {
    SSL_RETURN_IF_ERROR(communicator.AllReduce(gradient, ReduceOp::kMean));
    return gradient;
  }
  SSL_ASSIGN_OR_RETURN(const at::Tensor rows, communicator.AllGather(gradient));
  return rows.flatten(0, 1).narrow(0, 0, model.parameter_shards()->WholeRows(parameter));
}

absl::StatusOr<Trained> Train(Communicator& communicator, const Case& test, bool sharded) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Build(communicator, test.config));
  SSL_RETURN_IF_ERROR(ConvertTo(test.type, *model));
  if (sharded) {
    SSL_RETURN_IF_ERROR(model->ShardParameters(communicator));
    model->parameter_shards()->Release(/*take_over=*/true);
  }
  Trained trained;
  for (int64_t batch = 0; batch < test.batches; ++batch) {
    std::vector<at::Tensor> outputs;
    {
      const AutocastScope autocast(test.autocast);
      outputs = model->Forward(Views(test.sides, communicator.rank(), batch, test.type));
    }
    LossOf(outputs.back()).backward();
    for (const at::Tensor& output : outputs) trained.outputs.push_back(output.detach());
  }
  for (const NamedParameter& parameter : model->Parameters()) {
    trained.names.push_back(parameter.name);
    trained.elements += parameter.value.numel();
    SSL_ASSIGN_OR_RETURN(trained.gradients.emplace_back(), MeanGradient(*model, parameter.value, communicator));
  }
  return trained;
}

std::vector<Trained> TrainOn(int64_t ranks, const Case& test, bool sharded) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(trained[static_cast<size_t>(communicator.rank())], Train(communicator, test, sharded));
    return absl::OkStatus();
  }));
  return trained;
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const double error = (actual - expected).abs().max().item<double>();
  const double rounding = expected.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
  EXPECT_LE(error, rounding * (expected.abs().max().item<double>() + 0.1)) << what;
}

void ExpectSame(const Trained& sharded, const Trained& whole) {
  ASSERT_EQ(sharded.names, whole.names);
  ASSERT_FALSE(whole.names.empty());
  for (size_t i = 0; i < whole.outputs.size(); ++i) EXPECT_TRUE(at::equal(sharded.outputs[i], whole.outputs[i])) << i;
  for (size_t i = 0; i < whole.names.size(); ++i) {
    ExpectClose(sharded.gradients[i], whole.gradients[i], whole.names[i]);
  }
}

class ShardedModel : public ::testing::TestWithParam<int64_t> {
 protected:
  static void Compare(const Case& test) {
    const std::vector<Trained> whole = TrainOn(GetParam(), test, /*sharded=*/false);
    const std::vector<Trained> sharded = TrainOn(GetParam(), test, /*sharded=*/true);
    for (size_t rank = 0; rank < whole.size(); ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank));
      ExpectSame(sharded[rank], whole[rank]);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, ShardedModel, ::testing::Values(1, 2, 4));

TEST_P(ShardedModel, HasTheOutputsAndGradientsOfWholeParameters) { Compare({}); }

TEST_P(ShardedModel, AddsUpTheBatchesOfAnUpdate) { Compare({kResNet, Autocast::kOff, 3}); }

TEST_P(ShardedModel, RecomputesItsActivations) {
  Compare({absl::StrCat(kResNet, "  ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: true, ",
                        "NUM_ACTIVATION_CHECKPOINTING_SPLITS: 2}\n")});
}

TEST_P(ShardedModel, SharesBatchStatistics) {
  Compare({absl::StrCat(kResNet, "  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}\n",
                        "  ACTIVATION_CHECKPOINTING: {USE_ACTIVATION_CHECKPOINTING: true, ",
                        "NUM_ACTIVATION_CHECKPOINTING_SPLITS: 2}\n")});
}

// In one pass: the gradients of several are added in the short format where parameters are whole.
TEST_P(ShardedModel, RunsInAShortFormat) { Compare({kResNet, Autocast::kBFloat16, 1, {16, 16}}); }

// In float64: gradients of many tokens cancel, and in float32 their rounding is more than other networks'.
Case InDouble(const std::string& config, const std::vector<int64_t>& sides) {
  return {config, Autocast::kOff, 1, sides, at::kDouble};
}

TEST_P(ShardedModel, OfATransformer_HasTheOutputsAndGradientsOfWholeParameters) {
  Compare(InDouble(kVisionTransformer, {16, 16, 8}));
}

TEST_P(ShardedModel, OfATransformer_RecomputesItsActivations) {
  Compare(InDouble(absl::StrCat(kVisionTransformer, kRecomputeEach), {16, 16, 8}));
}

TEST_P(ShardedModel, OfATransformer_RunsInAShortFormat) {
  Compare({kVisionTransformer, Autocast::kBFloat16, 1, {16, 16}});
}

TEST_P(ShardedModel, OfXcit_HasTheOutputsAndGradientsOfWholeParameters) { Compare(InDouble(kXcit, {32, 32, 16})); }

TEST_P(ShardedModel, OfXcit_RecomputesItsActivations) {
  Compare(InDouble(absl::StrCat(kXcit, kRecomputeEach), {32, 32, 16}));
}

TEST_P(ShardedModel, HoldsItsShareOfTheParameters) {
  const int64_t whole = TrainOn(1, {}, /*sharded=*/false)[0].elements;
  const int64_t shard = TrainOn(GetParam(), {}, /*sharded=*/true)[0].elements;
  EXPECT_LE(shard, whole / GetParam() + whole / 50) << "of " << whole;
}

// The network of swav_tiny.
constexpr char kSwavTiny[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
  HEAD: {PARAMS: [[swav_head, {dims: [32, 32, 16], use_bn: True, num_clusters: [8]}]]}
)";

// scores: [3 B, K]. The first two of three views tell the others what they are.
at::Tensor SwappedLoss(const at::Tensor& scores) {
  const at::Tensor views = scores.view({3, -1, scores.size(1)});
  const at::Tensor codes = (views.narrow(0, 0, 2).detach() / 0.05).softmax(-1);
  const at::Tensor guesses = (views / 0.1).log_softmax(-1);
  const at::Tensor swapped = codes.flip({0}) * guesses.narrow(0, 0, 2) + codes * guesses[2];
  return swapped.sum(-1).mean().neg();
}

// The losses of 8 updates with swav_tiny's learning rate and momentum.
absl::StatusOr<std::vector<double>> LossesIn(at::ScalarType type, bool sharded, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Build(communicator, kSwavTiny));
  SSL_RETURN_IF_ERROR(ConvertTo(type, *model));
  if (sharded) {
    SSL_RETURN_IF_ERROR(model->ShardParameters(communicator));
    model->parameter_shards()->Release(/*take_over=*/true);
  }
  std::vector<at::Tensor> momenta(model->Parameters().size());
  std::vector<double> losses;
  for (int64_t step = 0; step < 8; ++step) {
    const std::vector<at::Tensor> views = Views({16, 16, 8}, communicator.rank(), step, type);
    const at::Tensor loss = SwappedLoss(model->Forward(views).back());
    losses.push_back(loss.item<double>());
    loss.backward();
    const std::vector<NamedParameter> parameters = model->Parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor value = parameters[i].value;
      at::Tensor gradient = value.grad();
      if (!sharded) SSL_RETURN_IF_ERROR(communicator.AllReduce(gradient, ReduceOp::kMean));
      momenta[i] = momenta[i].defined() ? momenta[i] * 0.9 + gradient : gradient.clone();
      value.detach().sub_(momenta[i] * 0.1);
      value.mutable_grad() = at::Tensor();
    }
  }
  return losses;
}

// The largest difference of a loss, relative.
double Drift(at::ScalarType type) {
  std::vector<double> drifts(2);
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::vector<double> whole, LossesIn(type, /*sharded=*/false, communicator));
    SSL_ASSIGN_OR_RETURN(const std::vector<double> sharded, LossesIn(type, /*sharded=*/true, communicator));
    double& drift = drifts[static_cast<size_t>(communicator.rank())];
    for (size_t i = 0; i < whole.size(); ++i) {
      drift = std::max(drift, std::abs(sharded[i] - whole[i]) / std::abs(whole[i]));
    }
    return absl::OkStatus();
  }));
  return std::max(drifts[0], drifts[1]);
}

// At swav_tiny's learning rate training magnifies rounding, in float32 until the losses have nothing in common. Were
// anything but rounding different, they would part as much in float64; they part by as much less as float64 is finer,
// 2^-29.
TEST(ShardedTraining, PartsFromWholeParametersByRoundingOnly) {
  const double in_float = Drift(at::kFloat);
  const double in_double = Drift(at::kDouble);
  EXPECT_LE(in_double, 1e-8 * in_float) << in_double << " in float64, " << in_float << " in float32";
}

}  // namespace
}  // namespace ssl
