// SPDX-License-Identifier: Apache-2.0
//
// Whole networks whose batch norm is over ranks: the network of one rank on all images, with and without recomputation.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/autocast.h"
#include "ssl/core/model.h"
#include "ssl/core/recompute_policy.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/models/layers.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kConfig[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STAGES: 2}}
  HEAD: {PARAMS: [[swav_head, {dims: [16, 16, 8], use_bn: true, num_clusters: [5]}]]}
)";
constexpr int64_t kTrunkLayers = 10;  // one of them without ReLU
constexpr int64_t kHeadLayers = 1;
constexpr int64_t kBuilding = 1;  // all-reduces: ranks agree that each has its parts
constexpr int64_t kImages = 8;

absl::StatusOr<std::unique_ptr<Model>> Build(Communicator& communicator, const std::string& text) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterModels(&registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode config, ParseYaml(text, "model.yaml", nullptr));
  return registries.models.Make("multi_input_output_model", *config.Find("MODEL"),
                                BuildContext{config, registries, communicator, /*seed=*/7, ""});
}

// Two large views and one small one, of the images of a rank.
std::vector<at::Tensor> Views(int64_t rank, int64_t ranks) {
  at::Generator generator = MakeGenerator(11);
  std::vector<at::Tensor> views;
  for (const int64_t side : {16, 16, 8}) {
    const at::Tensor all = at::empty({kImages, 3, side, side}, at::kFloat).normal_(0.0, 1.0, generator);
    views.push_back(all.narrow(0, rank * kImages / ranks, kImages / ranks));
  }
  return views;
}

// No sum of squares: those of normalised values have no gradient.
at::Tensor LossOf(const at::Tensor& scores) { return (scores.pow(3) + scores.sin() * 0.3).sum() / kImages; }

struct Step {
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> buffers;
};

Step StepOf(Model& model, const std::vector<at::Tensor>& outputs) {
  Step step;
  for (const at::Tensor& output : outputs) step.outputs.push_back(output.detach());
  for (const NamedParameter& parameter : model.Parameters()) step.gradients.push_back(parameter.value.grad());
  const std::vector<NamedTensor> tensors = *CollectState(model);
  for (const NamedTensor& entry : tensors) {
    if (!entry.tensor.requires_grad()) step.buffers.push_back(entry.tensor);
  }
  return step;
}

// A network that has trained one step.
absl::StatusOr<Step> Train(Communicator& communicator, RecomputePolicy* policy = nullptr, int64_t group_size = 0) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                       Build(communicator, absl::StrCat(kConfig, "  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, ",
                                                        "GROUP_SIZE: ", group_size, "}\n")));
  model->SetRecomputePolicy(policy);
  const std::vector<at::Tensor> outputs = model->Forward(Views(communicator.rank(), communicator.size()));
  LossOf(outputs[1]).backward();
  return StepOf(*model, outputs);
}

using RankSteps = std::vector<Step>;
using TrainRank = std::function<absl::StatusOr<Step>(Communicator&)>;

RankSteps TrainOn(int64_t ranks, const TrainRank& train) {
  RankSteps steps(static_cast<size_t>(ranks));
  EXPECT_OK(ThreadWorld(ranks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(steps[static_cast<size_t>(communicator.rank())], train(communicator));
    return absl::OkStatus();
  }));
  return steps;
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  const double scale = expected.abs().max().item<double>();
  const double error = (actual.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
  EXPECT_LE(error, 2e-5 * (scale + 0.1)) << what << " of magnitude " << scale;
}

void ExpectAddUp(const RankSteps& steps, const Step& expected) {
  ASSERT_GT(expected.gradients.size(), 0u);
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    at::Tensor sum = at::zeros_like(expected.gradients[i]);
    for (const Step& step : steps) sum += step.gradients[i];
    ExpectClose(sum, expected.gradients[i], absl::StrCat("gradient ", i));
  }
  for (const Step& step : steps) {
    for (size_t i = 0; i < expected.buffers.size(); ++i) {
      ExpectClose(step.buffers[i], expected.buffers[i], absl::StrCat("buffer ", i));
    }
  }
}

TEST(SyncModel, SeveralRanks_AreOneRankWithAllImages) {
  const auto train = [](Communicator& communicator) { return Train(communicator); };
  const Step expected = TrainOn(1, train)[0];
  for (const int64_t ranks : {2, 4}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks"));
    const RankSteps steps = TrainOn(ranks, train);
    ExpectAddUp(steps, expected);
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      std::vector<at::Tensor> rows;  // view-major on each rank
      for (const Step& step : steps) rows.push_back(step.outputs[i].view({3, kImages / ranks, -1}));
      ExpectClose(at::cat(rows, 1).flatten(0, 1), expected.outputs[i], absl::StrCat("output ", i));
    }
  }
}

TEST(SyncModel, GroupsOfTwo_AreOneRankEach) {
  const RankSteps halves = TrainOn(2, [](Communicator& communicator) { return Train(communicator, nullptr, 1); });
  const RankSteps quarters = TrainOn(4, [](Communicator& communicator) { return Train(communicator, nullptr, 2); });
  ExpectAddUp({quarters[0], quarters[1]}, halves[0]);
  ExpectAddUp({quarters[2], quarters[3]}, halves[1]);
}

TEST(SyncModel, TwoProcesses_AreTwoThreads) {
  const RankSteps threads = TrainOn(2, [](Communicator& communicator) { return Train(communicator); });
  EXPECT_OK(ProcessWorld(2).Run([&](Communicator& communicator) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const Step step, Train(communicator));
    const Step& expected = threads[static_cast<size_t>(communicator.rank())];
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      ExpectClose(step.gradients[i], expected.gradients[i], absl::StrCat("gradient ", i));
    }
    return absl::OkStatus();
  }));
}

// The same blocks in every pass.
class FixedPolicy : public RecomputePolicy {
 public:
  explicit FixedPolicy(std::vector<BlockRange> recomputed) : recomputed_(std::move(recomputed)) {}
  std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) override {
    return std::vector<RecomputePlan>(passes.size(), RecomputePlan{recomputed_});
  }

 private:
  const std::vector<BlockRange> recomputed_;
};

void ExpectSameBits(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(actual[i], expected[i])) << what << " " << i;
}

// Blocks: stem, pooling, four residual ones.
TEST(SyncModel, Recomputation_ChangesNoBitAndAsksNobodyAgain) {
  const RankSteps plain = TrainOn(2, [](Communicator& communicator) { return Train(communicator); });
  const std::vector<BlockRange> some = {{0, 2}, {3, 4}, {5, 6}};
  for (const std::vector<std::vector<BlockRange>>& plans :
       std::vector<std::vector<std::vector<BlockRange>>>{{some, some}, {some, {}}, {{{1, 5}}, some}}) {
    std::vector<CollectiveCounts> counts(2);
    const RankSteps steps = TrainOn(2, [&](Communicator& communicator) {
      const auto rank = static_cast<size_t>(communicator.rank());
      CountingCommunicator counting(communicator, &counts[rank]);
      FixedPolicy policy(plans[rank]);
      return Train(counting, &policy);
    });
    for (size_t rank = 0; rank < 2; ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank));
      ExpectSameBits(steps[rank].outputs, plain[rank].outputs, "output");
      ExpectSameBits(steps[rank].gradients, plain[rank].gradients, "gradient");
      ExpectSameBits(steps[rank].buffers, plain[rank].buffers, "buffer");
      // The trunk's layers for each of two resolutions, the head's for all; once forward, once backward.
      EXPECT_THAT(counts[rank].Take(),
                  UnorderedElementsAre(Pair("duplicate", 1),
                                       Pair("all-reduce", kBuilding + 2 * (2 * kTrunkLayers + kHeadLayers))));
    }
  }
}

TEST(SyncModel, Autocast_RecomputationHasTheSameOutputs) {
  const auto train = [](RecomputePolicy* policy) {
    return TrainOn(2, [policy](Communicator& communicator) {
      const AutocastScope autocast(Autocast::kBFloat16);
      return Train(communicator, policy);
    });
  };
  FixedPolicy policy({{0, 6}});
  const RankSteps plain = train(nullptr);
  const RankSteps recomputed = train(&policy);
  for (size_t rank = 0; rank < 2; ++rank) {
    ExpectSameBits(recomputed[rank].outputs, plain[rank].outputs, "output");
    ExpectSameBits(recomputed[rank].buffers, plain[rank].buffers, "buffer");
    for (const at::Tensor& gradient : recomputed[rank].gradients) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  }
}

constexpr char kTwoHeads[] = R"(
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125, STEM: small, STEM_STRIDE: 2, STAGES: 1}}
  MULTI_INPUT_HEAD_MAPPING: [[near, []], [far, []]]
  HEAD: {PARAMS: [[mlp, {dims: [8, 6, 4], use_bn: True}], [mlp, {dims: [8, 6, 4], use_bn: True}]]}
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: 0}
)";

TEST(SyncModel, Evaluation_AsksNobody) {
  TrainOn(2, [](Communicator& communicator) -> absl::StatusOr<Step> {
    CollectiveCounts counts;
    CountingCommunicator counting(communicator, &counts);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Build(counting, kTwoHeads));
    model->SetTraining(false);
    // One rank alone: nobody would answer.
    if (communicator.rank() == 0) model->ForwardNamed({{"near", Views(0, 2)[0]}});
    EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", kBuilding), Pair("duplicate", 1)));
    return Step();
  });
}

// The loss of the first half of the images, which two ranks divide, reads one output alone.
absl::StatusOr<Step> TrainTwoHeads(Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Build(communicator, kTwoHeads));
  const std::vector<at::Tensor> views = Views(communicator.rank(), communicator.size());
  const std::vector<at::Tensor> outputs = model->ForwardNamed({{"near", views[0]}, {"far", views[2]}});
  at::Tensor loss = LossOf(outputs[0]);
  const bool has_second_half = communicator.rank() + 1 == communicator.size();
  const int64_t half = kImages / 2;
  if (has_second_half) loss = loss + LossOf(outputs[1].narrow(0, outputs[1].size(0) - half, half));
  loss.backward();
  return StepOf(*model, outputs);
}

TEST(SyncModel, RankWhoseLossReadsOneOutput_HoldsNobodyUp) {
  ExpectAddUp(TrainOn(2, &TrainTwoHeads), TrainOn(1, &TrainTwoHeads)[0]);
}

}  // namespace
}  // namespace ssl
