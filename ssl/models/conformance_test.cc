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

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/models/head.h"
#include "ssl/models/register_models.h"
#include "ssl/models/testing/small_parts.h"
#include "ssl/models/trunk.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

at::Tensor Wave(at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.7)
      .view(shape)
      .contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

class ConformanceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterModels(&registries_)); }

  std::unique_ptr<Head> SmallHead(const std::string& name, int64_t seed) {
    absl::StatusOr<std::unique_ptr<Head>> head = MakeSmallHead(registries_, name, seed);
    EXPECT_OK(head);
    return *std::move(head);
  }

  std::unique_ptr<Trunk> SmallTrunk(const std::string& name, int64_t seed) {
    absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeSmallTrunk(registries_, name, seed);
    EXPECT_OK(trunk);
    return *std::move(trunk);
  }

  Registries registries_;
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
    CheckSynchronizes(*SmallHead(name, 1), [](Head& head) {
      return head.Forward(Wave({8, kSmallHeadChannels, 1, 1}));
    });
  }
}

TEST_F(ConformanceTest, EveryTrunk_SynchronizesAllOfItsBatchNorms) {
  for (const std::string& name : registries_.trunks.Names()) {
    SCOPED_TRACE(name);
    CheckSynchronizes(*SmallTrunk(name, 1), [](Trunk& trunk) { return trunk.Forward(Wave({4, 3, 64, 64})); });
  }
}

TEST_F(ConformanceTest, PartWithoutParametersForTests_IsNamed) {
  EXPECT_THAT(MakeSmallTrunk(registries_, "new", 1),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("trunk 'new' is registered")));
  EXPECT_THAT(MakeSmallHead(registries_, "new", 1),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("head 'new' is registered")));
}

TEST_F(ConformanceTest, EveryHead) {
  for (const std::string& name : registries_.heads.Names()) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Head> head = SmallHead(name, 1);
    const std::unique_ptr<Head> other = SmallHead(name, 2);
    const auto run = [](Head& part) { return part.Forward(Wave({8, kSmallHeadChannels, 1, 1})); };
    EXPECT_EQ(run(*head)[0].size(1), head->OutputDim(kSmallHeadChannels));
    EXPECT_TRUE(head->input_dim() == 0 || head->input_dim() == kSmallHeadChannels);
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
    const auto make = [&] { return SmallTrunk(name, 1); };
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
    const std::unique_ptr<Trunk> trunk = SmallTrunk(name, 1);
    const std::unique_ptr<Trunk> other = SmallTrunk(name, 2);
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
