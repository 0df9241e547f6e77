// SPDX-License-Identifier: Apache-2.0
//
// Every registered head on the stand-in device (docs/devices.md).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/head.h"
#include "ssl/models/register_models.h"
#include "ssl/models/testing/small_parts.h"
#include "ssl/testing/standin_comparison.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Of two resolutions of views, with gradients as a trunk asks for.
std::vector<at::Tensor> Features() {
  std::vector<at::Tensor> features;
  for (const int64_t rows : {8, 6}) {
    const at::Tensor wave = at::sin(at::arange(rows * kSmallHeadChannels, at::kFloat) * 0.7);
    features.push_back(wave.view({rows, kSmallHeadChannels, 1, 1}).requires_grad_());
  }
  return features;
}

ModelPart PartOf(Head& head) {
  return {head.Tensors(), [&head](bool training) { head.SetTraining(training); },
          [&head](const at::Tensor& features) { return head.Forward(features); }};
}

struct Case {
  std::string name;
  std::string arguments;  // "": the small one's
};

// What the small ones leave out: dropout, GELU, no batch norm, embeddings as outputs, other prototypes.
std::vector<Case> OtherCases() {
  return {{"dino_head", "{in_dim: 6, num_clusters: [7], normalize_last_layer: False, num_layers: 1}"},
          {"eval_mlp", "{in_channels: 6, dims: [6, 6, 5], use_bn: True, use_relu: True, use_residual: True}"},
          {"mlp", "{dims: [6, 5, 4], use_dropout: True}"},
          {"swav_head", "{dims: [6, 5, 4], use_bn: True, num_clusters: [7], return_embeddings: True}"},
          {"swav_head", "{dims: [6, 5, 4], use_bn: False, num_clusters: [7], activation_name: GELU}"}};
}

class StandinHeads : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  void SetUp() override {
    ASSERT_OK(RegisterModels(&registries_));
    cases_ = OtherCases();
    for (const std::string& name : registries_.heads.Names()) cases_.push_back({name, ""});
  }

  // `part_of` may prepare the head.
  void ExpectAllTheSame(const std::function<ModelPart(Head&)>& part_of) const {
    for (const Case& one : cases_) {
      SCOPED_TRACE(absl::StrCat(one.name, " ", one.arguments));
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> on_cpu, Make(one));
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Head> on_standin, Make(one));
      ExpectSamePasses(part_of(*on_cpu), part_of(*on_standin), Features(), kBitwise);
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<Head>> Make(const Case& one) const {
    if (one.arguments.empty()) return MakeSmallHead(registries_, one.name, /*seed=*/1);
    return MakeHead(registries_, one.name, one.arguments, /*seed=*/1);
  }

  Registries registries_;
  std::vector<Case> cases_;
};

TEST_F(StandinHeads, TrainAndEvaluateAsOnTheCpu) { ExpectAllTheSame(&PartOf); }

TEST_F(StandinHeads, WithBatchNormOverRanks_TrainAsOnTheCpu) {
  ExpectAllTheSame([](Head& head) {
    head.SynchronizeBatchNorm(MakeLocalCommunicator());
    return PartOf(head);
  });
}

}  // namespace
}  // namespace ssl
