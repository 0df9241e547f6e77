// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/resnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

at::Tensor Images(int64_t batch, int64_t size) {
  return at::sin(at::arange(batch * 3 * size * size, at::kFloat) * 0.11)
      .view({batch, 3, size, size})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

ResNetOptions SmallOptions(int64_t depth) {
  ResNetOptions options;
  options.depth = depth;
  options.width_multiplier = 0.125;
  return options;
}

std::unique_ptr<Trunk> Make(const ResNetOptions& options, int64_t seed = 0) {
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeResNet(options, seed);
  EXPECT_OK(trunk);
  return trunk.ok() ? *std::move(trunk) : nullptr;
}

const ModelTensor* Find(const ModelTensors& tensors, const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&name](const ModelTensor& entry) { return entry.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

int64_t CountParameters(const ModelTensors& tensors) {
  int64_t count = 0;
  for (const ModelTensor& entry : tensors) count += entry.role == TensorRole::kBuffer ? 0 : entry.value.numel();
  return count;
}

TEST(ResNet, ParametersAndNames_AreTorchvisions) {
  // torchvision's counts without the classifier: resnet18 11,689,512 - 513,000; resnet50 25,557,032 - 2,049,000.
  ResNetOptions options;
  options.depth = 18;
  const ModelTensors basic = Make(options)->Tensors();
  EXPECT_EQ(CountParameters(basic), 11176512);
  EXPECT_EQ(basic.size(), 120u);  // of torchvision's 122 without fc.weight and fc.bias
  EXPECT_EQ(basic[0].name, "conv1.weight");
  EXPECT_EQ(basic[1].name, "bn1.weight");
  EXPECT_EQ(basic[5].name, "bn1.num_batches_tracked");
  ASSERT_NE(Find(basic, "layer2.0.downsample.1.running_var"), nullptr);
  EXPECT_EQ(Find(basic, "layer1.0.downsample.0.weight"), nullptr);
  EXPECT_EQ(Find(basic, "layer4.1.conv2.weight")->value.sizes(), at::IntArrayRef({512, 512, 3, 3}));
  options.depth = 50;
  const ModelTensors bottleneck = Make(options)->Tensors();
  EXPECT_EQ(CountParameters(bottleneck), 23508032);
  EXPECT_EQ(Find(bottleneck, "layer1.0.downsample.0.weight")->value.sizes(), at::IntArrayRef({256, 64, 1, 1}));
  EXPECT_EQ(Find(bottleneck, "layer4.2.conv3.weight")->value.sizes(), at::IntArrayRef({2048, 512, 1, 1}));
}

TEST(ResNet, ResNeXt_HasTorchvisionsParameterCount) {
  ResNetOptions options;
  options.groups = 32;
  options.width_per_group = 4;
  EXPECT_EQ(CountParameters(Make(options)->Tensors()), 25028904 - 2049000);
}

TEST(ResNet, WidthMultiplier_ScalesStemAndStages) {
  ResNetOptions options;
  options.width_multiplier = 2.0;
  const std::unique_ptr<Trunk> trunk = Make(options);
  EXPECT_EQ(trunk->output_dim(), 4096);
  EXPECT_EQ(Find(trunk->Tensors(), "conv1.weight")->value.size(0), 128);
  EXPECT_EQ(Find(trunk->Tensors(), "layer1.0.conv2.weight")->value.size(0), 128);
}

TEST(ResNet, Features_HaveTheStagesShapes) {
  const std::unique_ptr<Trunk> trunk = Make(SmallOptions(18));
  const std::vector<at::Tensor> features =
      trunk->Features(Images(2, 64), {"conv1", "res1", "res2", "res3", "res4", "res5", "res5avg"});
  const std::vector<std::vector<int64_t>> shapes = {{2, 8, 32, 32}, {2, 8, 16, 16}, {2, 8, 16, 16}, {2, 16, 8, 8},
                                                    {2, 32, 4, 4},  {2, 64, 2, 2},  {2, 64}};
  ASSERT_EQ(features.size(), shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) EXPECT_EQ(features[i].sizes(), at::IntArrayRef(shapes[i])) << i;
}

TEST(ResNet, SmallStem_KeepsTheResolution) {
  ResNetOptions options = SmallOptions(18);
  options.stem = "small";
  options.max_pool = false;
  EXPECT_EQ(Make(options)->Features(Images(1, 16), {"res2"})[0].size(2), 16);
  options.stem_stride = 2;
  EXPECT_EQ(Make(options)->Features(Images(1, 16), {"res2"})[0].size(2), 8);
  options.layer4_stride = 1;
  EXPECT_EQ(Make(options)->Features(Images(1, 16), {"res5"})[0].size(2), 2);
}

TEST(ResNet, ThreeStages_EndAtTheThird) {
  ResNetOptions options = SmallOptions(18);
  options.stages = 3;
  const std::unique_ptr<Trunk> trunk = Make(options);
  EXPECT_EQ(trunk->output_dim(), 32);
  EXPECT_EQ(trunk->Forward(Images(2, 32)).sizes(), at::IntArrayRef({2, 32}));
  EXPECT_EQ(trunk->feature_names(),
            (std::vector<std::string>{"conv1", "res1", "res2", "res3", "res4", "res4avg", "flatten"}));
  EXPECT_EQ(Find(trunk->Tensors(), "layer4.0.conv1.weight"), nullptr);
}

TEST(ResNet, PooledStage_IsTheOutput) {
  const std::unique_ptr<Trunk> trunk = Make(SmallOptions(18));
  trunk->SetTraining(false);
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> features = trunk->Features(Images(2, 64), {"res5avg", "res5", "flatten", "res5"});
  EXPECT_TRUE(at::equal(features[0], trunk->Forward(Images(2, 64))));
  EXPECT_TRUE(at::allclose(features[0], features[1].mean({2, 3})));
  EXPECT_TRUE(at::equal(features[0], features[2]));
  EXPECT_TRUE(at::equal(features[1], features[3]));
}

TEST(ResNet, OtherNorms_HaveNeitherStatisticsNorModes) {
  for (const std::string norm : {"LayerNorm", "GroupNorm"}) {
    ResNetOptions options = SmallOptions(50);
    options.norm = norm;
    options.groupnorm_groups = 4;
    const std::unique_ptr<Trunk> trunk = Make(options);
    EXPECT_EQ(Find(trunk->Tensors(), "bn1.running_mean"), nullptr);
    EXPECT_EQ(Find(trunk->Tensors(), "layer1.0.downsample.1.weight")->role, TensorRole::kNorm);
    const at::NoGradGuard no_grad;
    const at::Tensor trained = trunk->Forward(Images(2, 32));
    trunk->SetTraining(false);
    EXPECT_TRUE(at::equal(trained, trunk->Forward(Images(2, 32))));
    EXPECT_TRUE(at::allclose(trained.narrow(0, 1, 1), trunk->Forward(Images(2, 32).narrow(0, 1, 1)), 1e-4, 1e-5));
  }
}

TEST(ResNet, GroupsThatDoNotDivideAWidth_AreRefused) {
  ResNetOptions options = SmallOptions(18);
  options.norm = "GroupNorm";
  EXPECT_THAT(MakeResNet(options, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("GROUPNORM_GROUPS is 32, which does not divide the 8 channels of stage 1")));
}

TEST(ResNet, UnknownFeature_NamesTheNearest) {
  const std::unique_ptr<Trunk> trunk = Make(SmallOptions(18));
  try {
    trunk->Features(Images(1, 32), {"res5av"});
    FAIL() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("'res5av'"));
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("did you mean 'res5avg'"));
  }
}

TEST(ResNet, ZeroInitResidual_MakesBlocksTheirShortcut) {
  ResNetOptions options = SmallOptions(18);
  options.zero_init_residual = true;
  const std::unique_ptr<Trunk> trunk = Make(options);
  const std::vector<at::Tensor> features = trunk->Features(Images(2, 32), {"res1", "res2"});
  EXPECT_TRUE(at::equal(features[0], features[1]));  // no downsampling in the first stage
}

TEST(ResNet, Evaluation_IsIndependentOfTheBatch) {
  const std::unique_ptr<Trunk> trunk = Make(SmallOptions(50));
  trunk->Forward(Images(4, 32));
  trunk->SetTraining(false);
  const at::NoGradGuard no_grad;
  const at::Tensor images = Images(4, 32);
  EXPECT_TRUE(at::allclose(trunk->Forward(images).narrow(0, 1, 1), trunk->Forward(images.narrow(0, 1, 1)), 1e-4, 1e-5));
}

TEST(ResNet, EveryParameter_GetsAGradient) {
  for (const int64_t depth : {18, 50}) {
    const std::unique_ptr<Trunk> trunk = Make(SmallOptions(depth));
    trunk->Forward(Images(4, 32)).pow(2).sum().backward();
    for (const ModelTensor& entry : trunk->Tensors()) {
      EXPECT_EQ(entry.value.grad().defined(), entry.role != TensorRole::kBuffer) << entry.name;
    }
  }
}

TEST(ResNet, SameSeed_GivesTheSameWeights) {
  const ModelTensors first = Make(SmallOptions(34), 5)->Tensors();
  const ModelTensors second = Make(SmallOptions(34), 5)->Tensors();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i].value, second[i].value)) << first[i].name;
  EXPECT_FALSE(at::equal(first[0].value, Make(SmallOptions(34), 6)->Tensors()[0].value));
}

TEST(ResNet, UnknownDepth_IsRefusedWithTheKnownOnes) {
  EXPECT_THAT(MakeResNet(SmallOptions(19), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("RESNETS.DEPTH is 19, expected 18, 34, 50")));
}

TEST(ResNet, GroupsWithoutBottlenecks_AreRefused) {
  ResNetOptions options = SmallOptions(18);
  options.groups = 2;
  EXPECT_THAT(MakeResNet(options, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("GROUPS is 2")));
}

TEST(ResNet, WidthThatLeavesNothing_IsRefused) {
  ResNetOptions options = SmallOptions(18);
  options.width_multiplier = 0.001;
  EXPECT_THAT(MakeResNet(options, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("WIDTH_MULTIPLIER")));
}

}  // namespace
}  // namespace ssl
