// SPDX-License-Identifier: Apache-2.0
//
// Every registered trunk on the stand-in device (docs/devices.md).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/register_models.h"
#include "ssl/models/testing/small_parts.h"
#include "ssl/models/trunk.h"
#include "ssl/testing/standin_comparison.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Views of two resolutions. Images are unlike each other: batch norm of equal ones would be rounding alone.
std::vector<at::Tensor> Images(at::ScalarType type) {
  std::vector<at::Tensor> images;
  for (const int64_t side : {64, 32}) {
    const at::Tensor places = at::arange(8 * 3 * side * side, at::kDouble);
    const at::Tensor wave = at::sin(places.square() * 0.37).to(type).view({8, 3, side, side});
    images.push_back(wave.contiguous(at::MemoryFormat::ChannelsLast));
  }
  return images;
}

ModelPart PartOf(Trunk& trunk) {
  return {trunk.Tensors(), [&trunk](bool training) { trunk.SetTraining(training); },
          [&trunk](const at::Tensor& images) { return std::vector<at::Tensor>{trunk.Forward(images)}; }};
}

ModelPart FeaturesOf(Trunk& trunk) {
  ModelPart part = PartOf(trunk);
  part.forward = [&trunk](const at::Tensor& images) { return trunk.Features(images, trunk.feature_names()); };
  return part;
}

struct Case {
  std::string name;
  std::string section;  // "": the small one
};

// What the small ones leave out: random numbers, blocks without squeeze and excitation, shallow residual blocks.
std::vector<Case> OtherCases() {
  return {{"regnet", "{REGNET: {depth: 3, w_0: 8, w_a: 8.0, w_m: 2.0, group_width: 8, use_se: False}}"},
          {"resnet", "{RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.125}}"},
          {"vision_transformer",
           "{VISION_TRANSFORMERS: {IMAGE_SIZE: 32, PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, "
           "MLP_DIM: 12, DROPOUT_RATE: 0.1, ATTENTION_DROPOUT_RATE: 0.2, DROP_PATH_RATE: 0.3}}"},
          {"xcit",
           "{XCIT: {PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, MLP_RATIO: 2, "
           "DROPOUT_RATE: 0.1, ATTENTION_DROPOUT_RATE: 0.2, DROP_PATH_RATE: 0.3}}"}};
}

// Results that are not the CPU's bit for bit: it has kernels of its own for convolutions and batch norm with ReLU.
double ToleranceOf(const Case& one) {
  static const auto* const trunks = new std::set<std::string>{"regnet", "regnet_fsdp", "resnet"};
  return trunks->count(one.name) > 0 ? 1e-4 : kBitwise;
}

// The small ResNet-50 is so deep, with so few values for each batch norm, that float32's differences of rounding grow
// to a third of some gradients.
at::ScalarType TypeOf(const Case& one) {
  return one.name == "resnet" && one.section.empty() ? at::kDouble : at::kFloat;
}

void Convert(const ModelTensors& tensors, at::ScalarType type) {
  for (const ModelTensor& entry : tensors) {
    if (entry.value.is_floating_point()) entry.value.set_data(entry.value.detach().to(type));
  }
}

class StandinTrunks : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  void SetUp() override {
    ASSERT_OK(RegisterModels(&registries_));
    cases_ = OtherCases();
    for (const std::string& name : registries_.trunks.Names()) cases_.push_back({name, ""});
  }

  // `part_of` may prepare the trunk.
  void ExpectAllTheSame(const std::function<ModelPart(Trunk&)>& part_of) const {
    for (const Case& one : cases_) {
      SCOPED_TRACE(absl::StrCat(one.name, " ", one.section));
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> on_cpu, Make(one));
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> on_standin, Make(one));
      for (const Trunk* trunk : {on_cpu.get(), on_standin.get()}) Convert(trunk->Tensors(), TypeOf(one));
      ExpectSamePasses(part_of(*on_cpu), part_of(*on_standin), Images(TypeOf(one)), ToleranceOf(one));
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<Trunk>> Make(const Case& one) const {
    if (one.section.empty()) return MakeSmallTrunk(registries_, one.name, /*seed=*/1);
    return MakeTrunk(registries_, one.name, one.section, /*seed=*/1);
  }

  Registries registries_;
  std::vector<Case> cases_;
};

TEST_F(StandinTrunks, TrainAndEvaluateAsOnTheCpu) { ExpectAllTheSame(&PartOf); }

TEST_F(StandinTrunks, GiveTheFeaturesOfTheCpu) { ExpectAllTheSame(&FeaturesOf); }

TEST_F(StandinTrunks, WithBatchNormOverRanks_TrainAsOnTheCpu) {
  ExpectAllTheSame([](Trunk& trunk) {
    trunk.SynchronizeBatchNorm(MakeLocalCommunicator());
    return PartOf(trunk);
  });
}

TEST_F(StandinTrunks, WithRecomputedBlocks_TrainAsOnTheCpu) {
  ExpectAllTheSame([](Trunk& trunk) {
    trunk.SetRecomputed({{{0, 2}, {2, trunk.num_blocks()}}});
    return PartOf(trunk);
  });
}

}  // namespace
}  // namespace ssl
