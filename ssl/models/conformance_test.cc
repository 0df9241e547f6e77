// SPDX-License-Identifier: Apache-2.0
//
// What every registered trunk and head promises: state that can be saved and loaded, modes, gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/models/head.h"
#include "ssl/models/register_models.h"
#include "ssl/models/trunk.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kChannels = 6;

at::Tensor Wave(at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7)
      .view(shape)
      .contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

// Arguments with batch norm for each head, for maps [N, kChannels, 1, 1]; a new head needs a line here.
const std::map<std::string, std::string>& HeadArguments() {
  static const auto* const arguments = new std::map<std::string, std::string>{
      {"dino_head", "{in_dim: 6, num_clusters: [7], use_bn: True, hidden_dim: 5, bottleneck_dim: 4}"},
      {"dino_head_fsdp", "{in_dim: 6, num_clusters: [7], use_bn: True, hidden_dim: 5, bottleneck_dim: 4}"},
      {"eval_mlp", "{in_channels: 6, dims: [6, 5]}"},
      {"eval_mlp_fsdp", "{in_channels: 6, dims: [6, 5]}"},
      {"identity", "{}"},
      {"mlp", "{dims: [6, 5, 4], use_bn: True, use_relu: True}"},
      {"mlp_fsdp", "{dims: [6, 5, 4], use_bn: True, use_relu: True}"},
      {"mlp_res", "{dims: [6, 6, 4], use_bn: True, use_relu: True}"},
      {"siamese_concat_view", "{num_towers: 2}"},
      {"swav_head", "{dims: [6, 5, 4], use_bn: True, num_clusters: [7, 3]}"},
      {"swav_head_fsdp", "{dims: [6, 5, 4], use_bn: True, num_clusters: [7, 3]}"},
  };
  return *arguments;
}

// A small MODEL.TRUNK for each trunk.
const std::map<std::string, std::string>& TrunkSections() {
  static const auto* const sections = new std::map<std::string, std::string>{
      {"regnet",
       "{REGNET: {name: anynet, depths: [1, 2], widths: [8, 16], group_widths: [4, 8], bottleneck_multipliers: [1, 1], "
       "strides: [2, 2]}}"},
      {"regnet_fsdp", "{REGNET: {depth: 3, w_0: 8, w_a: 8.0, w_m: 2.0, group_width: 8}}"},
      {"resnet", "{RESNETS: {DEPTH: 50, WIDTH_MULTIPLIER: 0.0625}}"},
      {"vision_transformer",
       "{VISION_TRANSFORMERS: {IMAGE_SIZE: 32, PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, MLP_DIM: "
       "12}}"},
      {"vision_transformer_fsdp",
       "{VISION_TRANSFORMERS: {IMAGE_SIZE: 64, PATCH_SIZE: 16, NUM_LAYERS: 3, NUM_HEADS: 4, HIDDEN_DIM: 8, MLP_DIM: "
       "12, "
       "QKV_BIAS: True, USE_CLASS_TOKEN: False}}"},
      {"xcit", "{XCIT: {PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, MLP_RATIO: 2, DROP_PATH_RATE: 0}}"},
      {"xcit_fsdp",
       "{XCIT: {PATCH_SIZE: 16, NUM_LAYERS: 1, NUM_HEADS: 4, HIDDEN_DIM: 16, DROP_PATH_RATE: 0, TOKENS_NORM: False}}"},
  };
  return *sections;
}

class ConformanceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterModels(&registries_)); }

  template <class Part>
  std::unique_ptr<Part> Make(const Registry<Part>& registry, const std::string& name, const std::string& text,
                             int64_t seed) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> params = ParseYaml(text, "test.yaml", &warnings);
    EXPECT_OK(params);
    const ConfigNode config = ConfigNode::Map();
    absl::StatusOr<std::unique_ptr<Part>> part =
        registry.Make(name, *params, {config, registries_, *communicator_, seed, ""});
    EXPECT_OK(part);
    return *std::move(part);
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

void CheckTensors(const ModelTensors& tensors) {
  std::set<std::string> names;
  for (const ModelTensor& entry : tensors) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " stands there twice";
    EXPECT_EQ(entry.value.requires_grad(), entry.role != TensorRole::kBuffer) << entry.name;
    EXPECT_TRUE(entry.value.is_leaf()) << entry.name;
  }
}

void Copy(const ModelTensors& from, const ModelTensors& to) {
  const at::NoGradGuard no_grad;
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(from[i].name, to[i].name);
    at::Tensor value = to[i].value;
    value.copy_(from[i].value);
  }
}

at::Tensor SumOfSquares(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum = at::zeros({});
  // Odd powers: the squares of unit vectors have no gradient.
  for (const at::Tensor& output : outputs) sum = sum + (output.pow(2) + output.pow(3)).sum();
  return sum;
}

void CheckGradients(const ModelTensors& tensors, const at::Tensor& loss) {
  if (tensors.empty()) return;
  loss.backward();
  for (const ModelTensor& entry : tensors) {
    if (entry.role == TensorRole::kBuffer) continue;
    EXPECT_TRUE(entry.value.grad().defined()) << entry.name;
  }
}

// run: the part's outputs. Two parts made from different seeds agree once one has the other's tensors; training and
// evaluation differ if there is batch norm.
template <class Part, class Run>
void CheckPart(Part& part, Part& other, const Run& run) {
  CheckTensors(part.Tensors());
  CheckGradients(part.Tensors(), SumOfSquares(run(part)));
  bool has_norm = false;
  for (const ModelTensor& entry : part.Tensors()) has_norm = has_norm || entry.role == TensorRole::kBuffer;
  const at::Tensor trained = SumOfSquares(run(part)).detach();
  Copy(part.Tensors(), other.Tensors());
  part.SetTraining(false);
  other.SetTraining(false);
  EXPECT_NE(has_norm, at::equal(SumOfSquares(run(part)), trained));
  EXPECT_TRUE(at::equal(SumOfSquares(run(part)), SumOfSquares(run(other))));
  part.SetTraining(true);
  EXPECT_NE(has_norm, at::equal(SumOfSquares(run(part)), SumOfSquares(run(other))));
}

// A part that keeps a batch norm from SynchronizeBatchNorm trains another network on several ranks.
template <class Part, class Run>
void CheckSynchronizes(Part& part, const Run& run) {
  int64_t norms = 0;
  for (const ModelTensor& entry : part.Tensors()) norms += absl::EndsWith(entry.name, "running_mean") ? 1 : 0;
  const std::unique_ptr<Communicator> ranks = MakeLocalCommunicator();
  CollectiveCounts counts;
  part.SynchronizeBatchNorm(std::make_shared<CountingCommunicator>(*ranks, &counts));
  run(part);
  EXPECT_EQ(counts.Take()["all-reduce"], norms) << "each batch norm asks the other ranks once";
}

TEST_F(ConformanceTest, EveryHead_SynchronizesAllOfItsBatchNorms) {
  for (const std::string& name : registries_.heads.Names()) {
    SCOPED_TRACE(name);
    CheckSynchronizes(*Make(registries_.heads, name, HeadArguments().at(name), 1), [](Head& head) {
      return head.Forward(Wave({8, kChannels, 1, 1}));
    });
  }
}

TEST_F(ConformanceTest, EveryTrunk_SynchronizesAllOfItsBatchNorms) {
  for (const std::string& name : registries_.trunks.Names()) {
    SCOPED_TRACE(name);
    CheckSynchronizes(*Make(registries_.trunks, name, TrunkSections().at(name), 1), [](Trunk& trunk) {
      return trunk.Forward(Wave({4, 3, 64, 64}));
    });
  }
}

TEST_F(ConformanceTest, EveryHead) {
  for (const std::string& name : registries_.heads.Names()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(HeadArguments().count(name), 1u) << "add arguments above";
    const std::string& arguments = HeadArguments().at(name);
    const std::unique_ptr<Head> head = Make(registries_.heads, name, arguments, 1);
    const std::unique_ptr<Head> other = Make(registries_.heads, name, arguments, 2);
    const auto run = [](Head& part) { return part.Forward(Wave({8, kChannels, 1, 1})); };
    EXPECT_EQ(run(*head)[0].size(1), head->OutputDim(kChannels));
    EXPECT_TRUE(head->input_dim() == 0 || head->input_dim() == kChannels);
    CheckPart(*head, *other, run);
  }
}

// Loss, gradients and running statistics of a step over two resolutions.
std::vector<at::Tensor> Step(Trunk& trunk) {
  trunk.SetTraining(true);
  at::Tensor loss = trunk.Forward(Wave({4, 3, 64, 64})).pow(2).sum() + trunk.Forward(Wave({6, 3, 32, 32})).sum();
  loss.backward();
  std::vector<at::Tensor> left = {loss.detach()};
  for (const ModelTensor& entry : trunk.Tensors()) {
    left.push_back(entry.role == TensorRole::kBuffer ? entry.value : entry.value.grad());
  }
  return left;
}

// A trunk of blocks is the chain of them, and recomputing any of them changes nothing.
TEST_F(ConformanceTest, EveryTrunkOfBlocks) {
  for (const std::string& name : registries_.trunks.Names()) {
    SCOPED_TRACE(name);
    const auto make = [&] { return Make(registries_.trunks, name, TrunkSections().at(name), 1); };
    const std::unique_ptr<Trunk> trunk = make();
    const size_t blocks = trunk->num_blocks();
    ASSERT_GT(blocks, 2u);
    at::Tensor map = Wave({4, 3, 64, 64});
    for (size_t i = 0; i < blocks; ++i) map = trunk->RunBlock(i, map, NormMode::kEvaluation);
    trunk->SetTraining(false);
    EXPECT_TRUE(at::equal(trunk->PoolOutput(map), trunk->Forward(Wave({4, 3, 64, 64}))));
    size_t tensors = 0;
    for (size_t i = 0; i < blocks; ++i) tensors += trunk->BlockTensors(i).size();
    EXPECT_EQ(tensors, trunk->Tensors().size());

    const std::vector<at::Tensor> plain = Step(*trunk);
    std::vector<BlockRange> each;
    for (size_t i = 0; i < blocks; ++i) each.push_back({i, i + 1});
    for (const std::vector<BlockRange>& parts :
         {each, {{0, blocks}}, {{1, blocks - 1}}, std::vector<BlockRange>{{0, 2}, {2, blocks - 1}}}) {
      const std::unique_ptr<Trunk> recomputing = make();
      recomputing->SetRecomputed({parts});
      const std::vector<at::Tensor> recomputed = Step(*recomputing);
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], recomputed[i])) << "tensor " << i;
    }
  }
}

TEST_F(ConformanceTest, EveryTrunk) {
  for (const std::string& name : registries_.trunks.Names()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(TrunkSections().count(name), 1u) << "add a section above";
    const std::string& section = TrunkSections().at(name);
    const std::unique_ptr<Trunk> trunk = Make(registries_.trunks, name, section, 1);
    const std::unique_ptr<Trunk> other = Make(registries_.trunks, name, section, 2);
    const auto run = [](Trunk& part) { return std::vector<at::Tensor>{part.Forward(Wave({4, 3, 64, 64}))}; };
    EXPECT_EQ(run(*trunk)[0].sizes(), at::IntArrayRef({4, trunk->output_dim()}));
    CheckPart(*trunk, *other, run);
    trunk->SetTraining(false);
    const std::vector<at::Tensor> stages = trunk->Features(Wave({4, 3, 64, 64}), trunk->feature_names());
    EXPECT_TRUE(at::equal(stages.back(), run(*trunk)[0])) << "the last stage is the output";
  }
}

}  // namespace
}  // namespace ssl
